/* trace/unwind: stacks of all shapes, one after another, against what the C library's unwinder
 * finds of each. Many are known again, and many look as if they were. */
#include "unit.h"

#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/unwind.h"

/* More than a site has: what is beyond decides nothing. */
enum { FRAMES = 2 * SITE_FRAMES_MAX, DEPTH_MAX = 300, STEPS = 40000 };
enum { NARROW, WIDE, ANY, ALIGNED };

/* What a thread has. */
struct subject {
    struct unwind_stack stack;
    uint64_t random;
    unsigned kinds; /* of frames */
    unsigned steps;
};

static __attribute__((noinline)) int compare(struct subject *subject)
{
    const struct trace_start start = TRACE_START();
    void *found[FRAMES], **expected = found;
    int count = backtrace(found, FRAMES);
    for (; count > 0 && *expected != (void *)start.caller; count--)
        expected++; /* this one, and a sanitizer's */
    unsigned frames = count < SITE_FRAMES_MAX ? (unsigned)count : SITE_FRAMES_MAX;
    const struct site *site = unwind_site(&subject->stack, &start);
    CHECK(site->frames == frames);
    for (unsigned i = 0; i < frames; i++)
        CHECK((void *)site->frame[i] == expected[i]);
    return 0;
}

static int wander(struct subject *subject, unsigned depth);

/* Four kinds of frames; those of the last two are of any length, and the last one is aligned, too.
 * Older return addresses stay where all but the first one do not write. */
static __attribute__((noinline)) int narrow(struct subject *subject, unsigned depth)
{
    return wander(subject, depth + 1) + 1;
}

static __attribute__((noinline)) int wide(struct subject *subject, unsigned depth)
{
    volatile char room[240];
    room[0] = 0;
    return wander(subject, depth + 1) + room[0];
}

/* Leaves the frame pointer to what it calls, and a word unwritten. */
static __attribute__((noinline)) int pass(struct subject *subject, unsigned depth)
{
    (void)depth;
    return compare(subject) + 1;
}

/* Saves it right below the return address. */
static __attribute__((noinline)) int save(struct subject *subject, unsigned depth)
{
    (void)depth;
    return compare(subject) + (__builtin_frame_address(0) == NULL);
}

static __attribute__((noinline)) int any(struct subject *subject, unsigned depth)
{
    static int (*const ways[])(struct subject *, unsigned) = {wander, wander, pass, save};
    uint64_t random = unit_random(&subject->random);
    volatile char *room = alloca(16 + random % 200);
    room[0] = 0;
    int sum = random >> 32 & 1 ? compare(subject) : 0;
    return sum + ways[(random >> 33) % ARRAY_LENGTH(ways)](subject, depth + 1) + room[0];
}

static __attribute__((noinline)) int aligned(struct subject *subject, unsigned depth)
{
    volatile char *room = alloca(16 + unit_random(&subject->random) % 200);
    _Alignas(64) volatile char line[64];
    room[0] = line[0] = 0;
    return wander(subject, depth + 1) + room[0] + line[0];
}

static int wander(struct subject *subject, unsigned depth)
{
    static int (*const ways[])(struct subject *, unsigned) = {
        [NARROW] = narrow, [WIDE] = wide, [ANY] = any, [ALIGNED] = aligned};
    int sum = 0;
    while (subject->steps && unit_random(&subject->random) % 8) {
        uint64_t random = unit_random(&subject->random);
        subject->steps--;
        if (random % 4 == 0 && depth < DEPTH_MAX)
            sum += ways[random / 4 % subject->kinds](subject, depth);
        else if (random % 4 == 1 && depth < DEPTH_MAX)
            sum += ways[random / 4 % 2](subject, depth) +
                   ways[random / 64 % subject->kinds](subject, depth);
        else
            sum += compare(subject);
    }
    return sum;
}

static void *wander_for_long(void *argument)
{
    struct subject *subject = argument;
    int sum = 0;
    while (subject->steps)
        sum += wander(subject, 0);
    CHECK(sum >= 0);
    return NULL;
}

static void stacks_are_those_of_the_unwinder(void **state)
{
    static struct subject subject;
    (void)state;
    subject = (struct subject){.random = 1, .kinds = ANY + 1, .steps = STEPS};
    wander_for_long(&subject);
}

static void those_of_aligned_frames_too(void **state)
{
    static struct subject subject;
    (void)state;
    subject = (struct subject){.random = 2, .kinds = ALIGNED + 1, .steps = STEPS};
    wander_for_long(&subject);
}

static void those_of_threads_too(void **state)
{
    static struct subject subjects[3];
    pthread_t threads[ARRAY_LENGTH(subjects)];
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(subjects); i++) {
        subjects[i] = (struct subject){.random = i + 3, .kinds = ANY + 1, .steps = STEPS};
        assert_int_equal(pthread_create(&threads[i], NULL, wander_for_long, &subjects[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(subjects); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static __attribute__((noinline)) int inner(struct subject *subject, size_t size, bool is_first)
{
    volatile char *room = alloca(size);
    room[0] = 0;
    int sum = is_first ? compare(subject) : 0; /* saves the frame pointer where.. */
    return sum + pass(subject, 0) + room[0];   /* .. this one writes nothing */
}

static __attribute__((noinline)) int outer(
    struct subject *subject, size_t size, size_t inner_size, bool is_first)
{
    volatile char *room = alloca(size);
    room[0] = 0;
    if (is_first)
        return inner(subject, inner_size, true) + room[0];
    return inner(subject, inner_size, false) + room[0] + 1;
}

/* The second time another call of `inner` leads to the same place. What the first one saved lies
 * there still. */
static void older_ones_are_not_taken_for_them(void **state)
{
    static struct subject subject;
    (void)state;
    for (volatile size_t shift = 0; shift <= 256; shift += 256) /* both from one call */
        CHECK(outer(&subject, 512 - shift, 512 + shift, shift == 0) > 0);
}

/* ---- Stacks that are known again ------------------------------------------------------------- */

static __attribute__((noinline)) struct site *take(struct unwind_stack *stack)
{
    const struct trace_start start = TRACE_START();
    return unwind_site(stack, &start);
}

/* Leaves the frame pointer to what it calls. */
static __attribute__((noinline)) struct site *pass_take(struct unwind_stack *stack)
{
    volatile char room = 0;
    return take(stack) + room;
}

static __attribute__((noinline)) struct site *any_take(struct unwind_stack *stack)
{
    static volatile size_t size = 16;
    volatile char *room = alloca(size);
    room[0] = 0;
    return take(stack) + room[0];
}

/* After the first round, what is kept leads to another site, which no walk would find. */
static __attribute__((noinline)) bool is_known_again(
    struct unwind_stack *stack, struct site *(*way)(struct unwind_stack *), size_t size)
{
    static struct site other;
    const struct site *site = NULL;
    volatile char *room = alloca(size);
    room[0] = 0;
    memset(stack->kept, 0, sizeof stack->kept);
    for (volatile unsigned round = 0; round < 2; round++) { /* both from one call */
        site = way(stack);
        for (unsigned i = 0; i < UNWIND_KEPT; i++)
            if (stack->kept[i].site)
                stack->kept[i].site = &other;
    }
    return site == &other;
}

static void the_same_are_known_again(void **state)
{
#ifdef __x86_64__
    const bool may_be = true;
#else
    const bool may_be = false; /* calls push nothing */
#endif
    static struct unwind_stack stack;
    (void)state;
    assert_int_equal(is_known_again(&stack, take, 100), may_be);
    assert_int_equal(is_known_again(&stack, pass_take, 100), may_be);
    assert_int_equal(is_known_again(&stack, any_take, 100), may_be);
}

/* A child of fork has one thread, whose stack is that of the thread that forked. */
static void *take_in_child(void *unused)
{
    static struct unwind_stack stack;
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        take(&stack);
        _exit((uintptr_t)&status >= stack.low && (uintptr_t)&status < stack.high ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    return unused;
}

static void bounds_are_those_of_the_stack(void **state)
{
    pthread_t thread;
    (void)state;
    take_in_child(NULL);
    assert_int_equal(pthread_create(&thread, NULL, take_in_child, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_are_those_of_the_unwinder),
        cmocka_unit_test(those_of_aligned_frames_too),
        cmocka_unit_test(those_of_threads_too),
        cmocka_unit_test(older_ones_are_not_taken_for_them),
        cmocka_unit_test(the_same_are_known_again),
        cmocka_unit_test(bounds_are_those_of_the_stack),
    };
    unwind_open(false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
