/* Threads begin and end beside each other, some that allocate before they wait and some after:
 * heaps change hands all the time (behaviours 33 to 35). Also what the figures of the C library's
 * functions say meanwhile and afterwards (behaviour 22).
 */
#include "semantics_support.h"

#include <pthread.h>
#include <time.h>

#include "semantics_xml.h"

enum { OUTER = 3, INNER = 4, ROUNDS = 700, PASSING = 20000 };

struct meeting {
    pthread_barrier_t barrier;
    bool failed;
};

static void *allocate_then_wait(void *argument)
{
    struct meeting *meeting = argument;
    void *block = malloc(32);
    meeting->failed |= block == NULL;
    pthread_barrier_wait(&meeting->barrier);
    free(block);
    return NULL;
}

static void *wait_then_allocate(void *argument)
{
    struct meeting *meeting = argument;
    pthread_barrier_wait(&meeting->barrier);
    void *block = malloc(32);
    meeting->failed |= block == NULL;
    free(block);
    return NULL;
}

static void *start_and_join(void *unused)
{
    bool good = true;
    for (unsigned round = 0; round < ROUNDS && good; round++) {
        pthread_t threads[INNER];
        struct meeting meeting = {.failed = false};
        pthread_barrier_init(&meeting.barrier, NULL, INNER + 1);
        for (unsigned i = 0; i < INNER; i++) {
            void *(*body)(void *) = i % 2 ? wait_then_allocate : allocate_then_wait;
            good &= pthread_create(&threads[i], NULL, body, &meeting) == 0;
        }
        pthread_barrier_wait(&meeting.barrier);
        for (unsigned i = 0; i < INNER; i++) {
            good &= pthread_join(threads[i], NULL) == 0;
        }
        pthread_barrier_destroy(&meeting.barrier);
        good &= !meeting.failed;
    }
    return good ? unused : NULL;
}

/* behaviours 33, 34 */
static void threads_end_beside_each_other(void **state)
{
    (void)state;
    pthread_t threads[OUTER];
    void *good;
    for (unsigned i = 0; i < OUTER; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, start_and_join, threads), 0);
    }
    for (unsigned i = 0; i < OUTER; i++) {
        assert_int_equal(pthread_join(threads[i], &good), 0);
        assert_non_null(good);
    }
}

static void *leave_a_block(void *unused)
{
    (void)unused;
    free(malloc(32));
    return malloc(32);
}

/* behaviours 22, 34: less than a byte a thread stays in use. */
static void threads_leave_nothing_in_use(void **state)
{
    (void)state;
    size_t before = mallinfo2().uordblks;
    for (unsigned i = 0; i < PASSING; i++) {
        pthread_t thread;
        void *block = NULL;
        assert_int_equal(pthread_create(&thread, NULL, leave_a_block, NULL), 0);
        assert_int_equal(pthread_join(thread, &block), 0);
        assert_non_null(block);
        free(block);
    }
    assert_true(mallinfo2().uordblks <= before + PASSING);
}

static pthread_barrier_t filled;

static void *hold_much(void *unused)
{
    enum { BLOCKS = 50000 };
    static __thread void *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(40);
    }
    pthread_barrier_wait(&filled);
    pthread_barrier_wait(&filled);
    for (unsigned i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    return unused;
}

static void check_info(void)
{
    static char text[64 * KIB];
    memset(text, 0, sizeof text);
    FILE *stream = fmemopen(text, sizeof text, "w");
    assert_non_null(stream);
    assert_int_equal(malloc_info(0, stream), 0);
    fclose(stream);
    assert_true(xml_is_well_formed(text, "malloc"));
}

/* behaviour 22: malloc_info while threads hold blocks, while they free them, and after. */
static void malloc_info_beside_threads(void **state)
{
    (void)state;
    pthread_t threads[INNER];
    pthread_barrier_init(&filled, NULL, INNER + 1);
    size_t before = mallinfo2().uordblks;
    for (unsigned i = 0; i < INNER; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hold_much, NULL), 0);
    }
    pthread_barrier_wait(&filled);
    check_info();
    assert_true(mallinfo2().uordblks >= before + INNER * 50000 * 40);
    pthread_barrier_wait(&filled);
    check_info();
    for (unsigned i = 0; i < INNER; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    check_info();
    assert_true(mallinfo2().uordblks <= before + MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_end_beside_each_other),
        cmocka_unit_test(threads_leave_nothing_in_use),
        cmocka_unit_test(malloc_info_beside_threads),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
