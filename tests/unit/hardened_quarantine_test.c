/* hardened/quarantine: first in, first out, by number and by bytes; nothing is lost or there
 * twice when threads come at once. */
#include "unit.h"

#include <pthread.h>

#include "hardened/quarantine.h"

enum { ITEMS = 4 * QUARANTINE_SLOTS, THREADS = 4, ROUNDS = 20000 };

static char items[ITEMS];

/* What came out, in this order, in a test of one thread. */
static void *out[ITEMS];
static unsigned out_count;

static size_t ten_bytes(const void *item)
{
    (void)item;
    return 10;
}

static void comes_out(void *item)
{
    out[out_count++] = item;
}

static void keeps_the_youngest(void **state)
{
    (void)state;
    struct quarantine_queue queue = {0};
    const struct quarantine quarantine = {&queue, SIZE_MAX, ten_bytes, comes_out, 0};
    out_count = 0;
    for (unsigned i = 0; i < ITEMS; i++) {
        quarantine_put(&quarantine, &items[i]);
        assert_int_equal(out_count, i < QUARANTINE_SLOTS ? 0 : i + 1 - QUARANTINE_SLOTS);
    }
    assert_int_equal(queue.bytes, QUARANTINE_SLOTS * 10);
    quarantine_release(&quarantine, 0);
    assert_int_equal(out_count, ITEMS);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_ptr_equal(out[i], &items[i]);
    assert_int_equal(queue.bytes, 0);
}

static void bounds_bytes(void **state)
{
    (void)state;
    struct quarantine_queue queue = {0};
    const struct quarantine quarantine = {&queue, 80, ten_bytes, comes_out, 0};
    out_count = 0;
    for (unsigned i = 0; i < 10; i++)
        quarantine_put(&quarantine, &items[i]);
    assert_int_equal(out_count, 2);
    quarantine_release(&quarantine, 50);
    assert_int_equal(out_count, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_ptr_equal(out[i], &items[i]);
    quarantine_release(&quarantine, 50);
    assert_int_equal(out_count, 5);
}

/* However long they are, unless all has to go. */
static void the_youngest_wait(void **state)
{
    (void)state;
    struct quarantine_queue queue = {0};
    const struct quarantine quarantine = {&queue, 5, ten_bytes, comes_out, 3};
    out_count = 0;
    for (unsigned i = 0; i < 10; i++) {
        quarantine_put(&quarantine, &items[i]);
        assert_int_equal(out_count, i < 3 ? 0 : i - 2);
    }
    quarantine_release(&quarantine, 0);
    for (unsigned i = 0; i < 10; i++)
        assert_ptr_equal(out[i], &items[i]);
    assert_int_equal(out_count, 10);
}

/* Two threads that put something in may end their turns in the other order. */
static void what_is_behind_catches_up(void **state)
{
    (void)state;
    struct quarantine_queue queue = {0};
    const struct quarantine quarantine = {&queue, SIZE_MAX, ten_bytes, comes_out, 0};
    out_count = 0;
    for (unsigned i = 0; i < ITEMS / 2; i++)
        quarantine_put(&quarantine, &items[i]);
    queue.taken = 1;
    quarantine_put(&quarantine, &items[ITEMS / 2]);
    quarantine_release(&quarantine, 0);
    for (unsigned i = 0; i <= ITEMS / 2; i++)
        assert_ptr_equal(out[i], &items[i]);
}

static struct quarantine_queue overtaken_queue;

static size_t overtaken_bytes(const void *item);

static const struct quarantine overtaken = {&overtaken_queue, 80, overtaken_bytes, comes_out, 0};

/* While the first one has taken its turn and is not in yet, a whole round of others is. */
static size_t overtaken_bytes(const void *item)
{
    static bool begun;
    if (item == &items[0] && !begun) {
        begun = true;
        for (unsigned i = 1; i <= QUARANTINE_SLOTS; i++)
            quarantine_put(&overtaken, &items[i]);
    }
    return 10;
}

static void bytes_stay_bounded_after_an_overtaken_turn(void **state)
{
    (void)state;
    out_count = 0;
    for (unsigned i = 0; i < ITEMS; i = i ? i + 1 : QUARANTINE_SLOTS + 1) {
        quarantine_put(&overtaken, &items[i]);
        assert_true(overtaken_queue.taken <= overtaken_queue.put);
        assert_true(overtaken_queue.bytes <= 80);
    }
    quarantine_release(&overtaken, 0);
    assert_int_equal(overtaken_queue.bytes, 0);
    assert_int_equal(out_count, ITEMS);
}

static struct quarantine_queue shared_queue;
static unsigned waiting[ITEMS]; /* atomic: so often is the item there */

static size_t bytes_unless_marker(const void *item)
{
    return item != &shared_queue;
}

static void count_out(void *item)
{
    if (item != &shared_queue)
        CHECK(__atomic_fetch_sub(&waiting[(char *)item - items], 1, __ATOMIC_RELAXED) == 1);
}

static const struct quarantine shared = {
    &shared_queue, QUARANTINE_SLOTS - 8, bytes_unless_marker, count_out, 0};

static void *put_and_take(void *argument)
{
    unsigned first = *(unsigned *)argument * (ITEMS / THREADS);
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned item = first + i % (ITEMS / THREADS);
        if (!__atomic_load_n(&waiting[item], __ATOMIC_RELAXED)) {
            __atomic_store_n(&waiting[item], 1, __ATOMIC_RELAXED);
            quarantine_put(&shared, &items[item]);
        }
        if (i % 3 == 0)
            quarantine_release(&shared, QUARANTINE_SLOTS / 2);
    }
    return NULL;
}

static void threads_share_it(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    unsigned numbers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, put_and_take, &numbers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    /* What a turn has passed by comes out when its slot is used again. */
    for (unsigned i = 0; i < QUARANTINE_SLOTS; i++)
        quarantine_put(&shared, &shared_queue);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_int_equal(waiting[i], 0);
    assert_int_equal(shared_queue.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_youngest),
        cmocka_unit_test(bounds_bytes),
        cmocka_unit_test(the_youngest_wait),
        cmocka_unit_test(what_is_behind_catches_up),
        cmocka_unit_test(bytes_stay_bounded_after_an_overtaken_turn),
        cmocka_unit_test(threads_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
