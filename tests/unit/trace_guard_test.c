/* trace/guard: guarded samples on a system with pages of 64 KiB, so that they may be long, whose
 * calls the test answers where it says so (CMakeLists.txt wraps them). */
#include "unit.h"

#include <pthread.h>

#include "api/alloc.h"
#include "api/block.h"
#include "base/policy.h"
#include "map/page_map.h"
#include "os/os.h"
#include "trace/due.h"
#include "trace/sample.h"

size_t __wrap_os_page_size(void);
bool __wrap_os_make_untouchable(void *address, size_t size);
bool __real_os_make_untouchable(void *address, size_t size);
uintptr_t __wrap_page_map_reserve(size_t bytes);
uintptr_t __real_page_map_reserve(size_t bytes);

size_t __wrap_os_page_size(void)
{
    return 64 * KIB;
}

static bool is_refused;

bool __wrap_os_make_untouchable(void *address, size_t size)
{
    return !is_refused && __real_os_make_untouchable(address, size);
}

static void *set_mean(void *mean)
{
    return sample_set_mean((uintptr_t)mean) ? mean : NULL;
}

/* The first time another thread comes, too. */
static unsigned ranges;
enum { FIRST_MEAN = 1, SECOND_MEAN = 2 };

uintptr_t __wrap_page_map_reserve(size_t bytes)
{
    pthread_t thread;
    void *mean = NULL;
    if (ranges++ == 0) {
        CHECK(pthread_create(&thread, NULL, set_mean, (void *)(uintptr_t)SECOND_MEAN) == 0);
        CHECK(pthread_join(thread, &mean) == 0);
        CHECK((uintptr_t)mean == SECOND_MEAN);
    }
    return __real_page_map_reserve(bytes);
}

static bool is_guarded(const void *block)
{
    return guard_covers(block) && block_find(block).kind == BLOCK_WATCHED;
}

static int start(void **state)
{
    (void)state;
    policy.sample_guards = 1;
    return sample_set_mean(FIRST_MEAN) ? 0 : -1;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* One of two threads that turn sampling on at once does it, with the mean that was set last. */
static void one_thread_makes_the_range(void **state)
{
    (void)state;
    assert_int_equal(ranges, 1);
    assert_int_equal(due_mean(), SECOND_MEAN);
}

/* A block that the system would not take away is overwritten: the next one there is zero. */
static void a_block_that_stays_is_cleared(void **state)
{
    enum { SIZE = 3000, ROUNDS = 2 * GUARD_SLOTS };
    unsigned guarded = 0;
    (void)state;
    is_refused = true;
    for (unsigned i = 0; i < ROUNDS; i++) {
        char *block = alloc_zeroed(1, SIZE - i % 2 * 100);
        CHECK(block && unit_all_bytes(block, SIZE - 100, 0));
        guarded += is_guarded(block);
        memset(block, 0xee, SIZE - 100);
        release(block);
    }
    is_refused = false;
    CHECK(guarded > GUARD_SLOTS);
}

/* Long ones are in no slab, and are moved as short ones are. */
static void long_blocks_are_resized(void **state)
{
    static const size_t sizes[] = {40000,  150000, 190000, 290000, 299000,
                                   320000, 400000, 800000, 3000000};
    (void)state;
    for (size_t from = 0; from < ARRAY_LENGTH(sizes); from++) {
        for (size_t to = 0; to < ARRAY_LENGTH(sizes); to++) {
            char *block = alloc(sizes[from]);
            CHECK(block && (is_guarded(block) || sizes[from] > 14 * os_page_size()));
            memset(block, 0xee, sizes[from]);
            block = alloc_resize(block, sizes[to]);
            CHECK(block && alloc_usable_size(block, "test") >= sizes[to]);
            CHECK(unit_all_bytes(block, size_min(sizes[from], sizes[to]), 0xee));
            release(block);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_makes_the_range),
        cmocka_unit_test(a_block_that_stays_is_cleared),
        cmocka_unit_test(long_blocks_are_resized),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
