/* span/parts: what page heap and BigCache have for each shard is made when it is first asked for.
 */
#include "unit.h"

#include <pthread.h>

#include "checks/checks.h"
#include "map/metadata.h"
#include "span/parts.h"

enum { SIZE = 5000, THREADS = 8 };

static void check_made(const struct parts *parts, unsigned count)
{
    assert_int_equal(parts_count(parts), count);
    for (unsigned i = 0; i < count; i++) {
        const char *part = parts_at(parts, i);
        CHECK(part != NULL && (uintptr_t)part % CACHE_LINE == 0);
        for (unsigned byte = 0; byte < SIZE; byte++)
            CHECK(part[byte] == 0);
        for (unsigned other = 0; other < i; other++)
            CHECK(parts_at(parts, other) != part);
    }
}

/* Only what is asked for, and what comes before it. */
static void parts_are_made_in_order(void **state)
{
    (void)state;
    static CACHE_ALIGNED char first[SIZE];
    struct parts parts = {.part = {first}, .count = 1, .size = SIZE};
    assert_int_equal(parts_use(&parts, 0), 0);
    check_made(&parts, 1);
    assert_int_equal(parts_use(&parts, 3), 3);
    check_made(&parts, 4);
    void *third = parts_at(&parts, 3);
    assert_int_equal(parts_use(&parts, 2), 2);
    assert_int_equal(parts_use(&parts, 4), 4);
    check_made(&parts, 5);
    assert_ptr_equal(parts_at(&parts, 3), third);
    parts_use(&parts, SHARD_PARTS_MAX - 1);
    check_made(&parts, SHARD_PARTS_MAX);
    metadata_check();
}

static CACHE_ALIGNED char first_of_race[SIZE];
static struct parts raced = {.part = {first_of_race}, .count = 1, .size = SIZE};
static pthread_barrier_t start;

static void *use_all(void *unused)
{
    pthread_barrier_wait(&start);
    for (unsigned part = 0; part < SHARD_PARTS_MAX; part++) {
        CHECK(parts_use(&raced, part) == part);
        CHECK(parts_count(&raced) > part && parts_at(&raced, part) != NULL);
    }
    return unused;
}

static void threads_make_each_once(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, use_all, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    check_made(&raced, SHARD_PARTS_MAX);
    metadata_check();
}

/* Who gets no memory for a part of its own has the first, until there is some. */
static void the_first_serves_where_memory_is_short(void **state)
{
    (void)state;
    static CACHE_ALIGNED char first[SIZE];
    struct parts parts = {.part = {first}, .count = 1, .size = SIZE};
    struct rlimit before, none = {0};
    while (metadata_alloc(64 * 64) && metadata_bytes() < 1024 * 1024)
        continue;
    getrlimit(RLIMIT_AS, &before);
    none.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_AS, &none);
    unsigned used;
    while ((used = parts_use(&parts, parts_count(&parts))) != 0)
        CHECK(used < SHARD_PARTS_MAX - 1);
    unsigned count = parts_count(&parts);
    setrlimit(RLIMIT_AS, &before);
    check_made(&parts, count);
    assert_int_equal(parts_use(&parts, count), count);
    check_made(&parts, count + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_made_in_order),
        cmocka_unit_test(threads_make_each_once),
        cmocka_unit_test(the_first_serves_where_memory_is_short),
    };
    return cmocka_run_group_tests_name("span_parts", tests, NULL, NULL);
}
