/* span/limbo: first in, first out, by number and by bytes; nothing is lost or there twice when
 * threads come at once. */
#include "unit.h"

#include <pthread.h>

#include "span/limbo.h"

enum { ITEMS = 4 * LIMBO_SLOTS, THREADS = 4, ROUNDS = 20000 };

static char items[ITEMS];

static void keeps_the_youngest(void **state)
{
    (void)state;
    struct limbo limbo = {0};
    for (unsigned i = 0; i < ITEMS; i++) {
        void *oldest = limbo_put(&limbo, &items[i], 10);
        assert_ptr_equal(oldest, i < LIMBO_SLOTS ? NULL : &items[i - LIMBO_SLOTS]);
        if (oldest)
            limbo_tell(&limbo, 10);
    }
    assert_int_equal(limbo.bytes, LIMBO_SLOTS * 10);
    for (unsigned i = 0; i < LIMBO_SLOTS; i++) {
        assert_ptr_equal(limbo_take(&limbo, 0), &items[ITEMS - LIMBO_SLOTS + i]);
        limbo_tell(&limbo, 10);
    }
    assert_null(limbo_take(&limbo, 0));
    assert_int_equal(limbo.bytes, 0);
}

static void bounds_bytes(void **state)
{
    (void)state;
    struct limbo limbo = {0};
    for (unsigned i = 0; i < 10; i++)
        assert_null(limbo_put(&limbo, &items[i], 100));
    for (unsigned i = 0; i < 5; i++) {
        assert_ptr_equal(limbo_take(&limbo, 500), &items[i]);
        limbo_tell(&limbo, 100);
    }
    assert_null(limbo_take(&limbo, 500));
}

static struct limbo shared;
static unsigned waiting[ITEMS]; /* atomic: so often is the item there */

static void came_out(void *oldest)
{
    if (!oldest)
        return;
    limbo_tell(&shared, 1);
    CHECK(__atomic_fetch_sub(&waiting[(char *)oldest - items], 1, __ATOMIC_RELAXED) == 1);
}

static void *put_and_take(void *argument)
{
    unsigned first = *(unsigned *)argument * (ITEMS / THREADS);
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned item = first + i % (ITEMS / THREADS);
        if (!__atomic_load_n(&waiting[item], __ATOMIC_RELAXED)) {
            __atomic_store_n(&waiting[item], 1, __ATOMIC_RELAXED);
            came_out(limbo_put(&shared, &items[item], 1));
        }
        if (i % 3 == 0)
            came_out(limbo_take(&shared, LIMBO_SLOTS / 2));
    }
    return NULL;
}

static void threads_share_it(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    unsigned numbers[THREADS];
    void *oldest;
    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, put_and_take, &numbers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    /* What a turn has passed by comes out when its slot is used again. */
    for (unsigned i = 0; i < LIMBO_SLOTS; i++)
        if ((oldest = limbo_put(&shared, &shared, 0)) != NULL && oldest != &shared)
            came_out(oldest);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_int_equal(waiting[i], 0);
    assert_int_equal(shared.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_youngest),
        cmocka_unit_test(bounds_bytes),
        cmocka_unit_test(threads_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
