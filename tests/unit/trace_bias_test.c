/* trace/sample, thread/due: what samples say against what was allocated, where the order of
 * allocations would bias who does not decide at each of them. The generators are seeded, and the
 * clock stands: when it moves, heaps are parked, and pops that are then due draw as well. So the
 * sums come out alike each time. */
#include "unit.h"

#include <math.h>
#include <pthread.h>

#include "api/alloc.h"
#include "thread/registry.h"
#include "trace/due.h"
#include "trace/sample.h"

uint64_t __wrap_os_clock_ms(void);

uint64_t __wrap_os_clock_ms(void)
{
    return 1;
}

enum { MEAN = 512, BLOCKS = 10000, SEEDS = 64 };

static void *held[BLOCKS];

/* ---- Sites ----------------------------------------------------------------------------------- */

/* A function that allocates, and where its code lies. */
struct place {
    void *(*allocate)(size_t size);
    const char *start, *stop;
};

/* A section of its own has bounds. A line of assembly keeps the call from being the last thing,
 * which would make it a jump, and the functions from being one, by the name in it. */
#define SITE(name, expression)                                                                     \
    extern const char __start_##name##_text[], __stop_##name##_text[];                             \
    __attribute__((noinline, section(#name "_text"))) static void *name##_allocate(size_t size)    \
    {                                                                                              \
        void *block = expression;                                                                  \
        __asm__ volatile("# " #name : "+r"(block));                                                \
        CHECK(block);                                                                              \
        return block;                                                                              \
    }                                                                                              \
    static const struct place name = {name##_allocate, __start_##name##_text, __stop_##name##_text};

SITE(site_a, alloc(size))
SITE(site_b, alloc(size))
SITE(site_zeroed, alloc_zeroed(1, size))
SITE(site_aligned, alloc_aligned(size, 64))
SITE(site_resized, alloc_resize(NULL, size))

struct estimate {
    double born, born_blocks, dead, remote;
};

static bool is_of(const struct site *site, const struct place *place)
{
    for (unsigned i = 0; i < site->frames; i++)
        if (site->frame[i] > (uintptr_t)place->start && site->frame[i] <= (uintptr_t)place->stop)
            return true;
    return false;
}

static struct estimate estimate_of(const struct place *place)
{
    struct estimate sum = {0};
    for (const struct site *site = site_newest(); site; site = site->next) {
        if (!is_of(site, place))
            continue;
        sum.born += (double)site->born_bytes;
        sum.born_blocks += (double)site->born_parts / SITE_PARTS;
        sum.dead += (double)site->dead_bytes;
        sum.remote += (double)site->remote_parts / SITE_PARTS;
    }
    return sum;
}

/* ---- What estimates are worth ---------------------------------------------------------------- */

/* Estimates of one site in one case. */
struct account {
    double bytes, exact;
    unsigned estimates, near; /* near: within two standard deviations */
};

/* What was allocated there since `before` is what it says, within five standard
 * deviations. */
static void check_born(
    struct account *account, const struct place *place, struct estimate before, double blocks,
    size_t size)
{
    struct estimate now = estimate_of(place);
    double chance = SITE_PARTS / (double)due_stands_for(size_classes[size_class_of(size)].size);
    double bytes = now.born - before.born, exact = blocks * (double)size;
    double deviation = (double)size * sqrt(blocks * (1 - chance) / chance);
    assert_true(fabs(bytes - exact) <= 5 * deviation);
    assert_true(
        fabs(now.born_blocks - before.born_blocks - blocks) <= 5 * deviation / (double)size);
    account->bytes += bytes;
    account->exact += exact;
    account->estimates++;
    account->near += fabs(bytes - exact) <= 2 * deviation;
}

static void begin(uint64_t seed)
{
    struct heap *heap = heap_enter();
    assert_non_null(heap);
    heap->random = seed * 0xd1342543de82ef95u; /* streams far apart */
    heap_draw_due(heap, false);
    heap_leave(heap);
}

/* Over all seeds there is no bias of more than 1 %, which is three standard deviations of the least
 * sampled site; and 95 % of the estimates are near, as far as so many can tell. */
static void check_account(const struct account *account, const char *name)
{
    double bias = account->bytes / account->exact - 1, count = account->estimates;
    double slack = 2 * sqrt(count * 0.05 * 0.95);
    print_message(
        "%s: bias %+.2f%%, %u of %u within two deviations\n", name, 100 * bias, account->near,
        account->estimates);
    assert_true(fabs(bias) <= 0.01);
    assert_true(account->near >= 0.95 * count - slack);
}

static int start(void **state)
{
    (void)state;
    return sample_set_mean(MEAN) ? 0 : -1;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static struct account all; /* of all cases */

static void close_account(const struct account *account, const char *name)
{
    check_account(account, name);
    all.bytes += account->bytes;
    all.exact += account->exact;
    all.estimates += account->estimates;
    all.near += account->near;
}

/* Of two blocks at a time that come and go, no call ever misses. */
static void pairs_beside_a_leak(void **state)
{
    (void)state;
    struct account pair = {0}, leak = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(seed);
        struct estimate a = estimate_of(&site_a), b = estimate_of(&site_b);
        unsigned leaked = 0;
        for (unsigned i = 0; i < 8 * BLOCKS; i++) {
            void **block = site_a.allocate(64);
            block[0] = NULL;
            release(block);
            if (i % 8 == 0)
                *(void **)(held[leaked++] = site_b.allocate(64)) = NULL;
        }
        check_born(&pair, &site_a, a, 8 * BLOCKS, 64);
        check_born(&leak, &site_b, b, BLOCKS, 64);
        struct estimate now = estimate_of(&site_b), pairs = estimate_of(&site_a);
        assert_true(now.dead == b.dead);
        assert_true(pairs.born - pairs.dead == a.born - a.dead);
        while (leaked)
            release(held[--leaked]);
        now = estimate_of(&site_b);
        assert_true(now.born == now.dead);
    }
    close_account(&pair, "pairs");
    close_account(&leak, "leak beside them");
}

static void two_sites_in_turn(void **state)
{
    (void)state;
    struct account first = {0}, second = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(seed);
        struct estimate a = estimate_of(&site_a), b = estimate_of(&site_b);
        for (unsigned i = 0; i < BLOCKS; i++) {
            void **one = site_a.allocate(200), **two = site_b.allocate(200);
            one[0] = two[0] = NULL;
            release(i % 2 ? one : two);
            release(i % 2 ? two : one);
        }
        check_born(&first, &site_a, a, BLOCKS, 200);
        check_born(&second, &site_b, b, BLOCKS, 200);
    }
    close_account(&first, "first in turn");
    close_account(&second, "second in turn");
}

static void phases(void **state)
{
    (void)state;
    struct account account = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(seed);
        for (unsigned phase = 0; phase < 6; phase++) {
            const struct place *place = phase % 2 ? &site_zeroed : &site_resized;
            size_t size = 40 + 100 * phase;
            struct estimate before = estimate_of(place);
            for (unsigned i = 0; i < BLOCKS; i++)
                held[i] = place->allocate(size);
            check_born(&account, place, before, BLOCKS, size);
            for (unsigned i = 0; i < BLOCKS; i++)
                release(held[i]);
            struct estimate now = estimate_of(place);
            assert_true(now.born == now.dead);
        }
    }
    close_account(&account, "phases");
}

static void *free_all(void *unused)
{
    for (unsigned i = 0; i < BLOCKS; i++)
        release(held[i]);
    return unused;
}

static void producer_and_consumer(void **state)
{
    (void)state;
    struct account account = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(seed);
        struct estimate before = estimate_of(&site_aligned);
        pthread_t thread;
        for (unsigned i = 0; i < BLOCKS; i++)
            held[i] = site_aligned.allocate(128);
        assert_int_equal(pthread_create(&thread, NULL, free_all, NULL), 0);
        pthread_join(thread, NULL);
        check_born(&account, &site_aligned, before, BLOCKS, 128);
        struct estimate now = estimate_of(&site_aligned);
        assert_true(now.born == now.dead);
        assert_true(now.remote - before.remote == now.born_blocks - before.born_blocks);
    }
    close_account(&account, "producer");
}

static void all_cases(void **state)
{
    (void)state;
    check_account(&all, "all cases");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_beside_a_leak),
        cmocka_unit_test(two_sites_in_turn),
        cmocka_unit_test(phases),
        cmocka_unit_test(producer_and_consumer),
        cmocka_unit_test(all_cases),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
