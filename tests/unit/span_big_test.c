/* span/big: mappings of their own and the BigCache (behaviours 11, 13, 23, 24). */
#include "unit.h"

#include "base/policy.h"
#include "os/os.h"
#include "span/big.h"

enum { BLOCKS = 12, STEPS = 1500 };

struct held {
    char *block;
    size_t size;
    unsigned char fill;
};

static struct big *big_of(const void *block)
{
    struct region *region = page_map_lookup(block);
    CHECK(region && region->kind == REGION_BIG && region->base == (const char *)block);
    return (struct big *)region;
}

static size_t size_of(const void *block)
{
    return big_size(big_of(block), block, "test");
}

static void release_block(void *block)
{
    big_free(big_of(block), block, "free");
}

static void empty_cache(void)
{
    big_cache_evict(SIZE_MAX);
    assert_int_equal(big_stats().cached_bytes, 0);
}

static void sizes_and_alignments(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, BIG_MIN, BIG_MIN + 1, 5 * MIB + 12345, 64 * MIB};
    for (size_t alignment = 1; alignment <= GIB; alignment *= 4) {
        for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
            char *block = big_alloc(sizes[i], alignment, true);
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % size_max(alignment, REGION_SIZE), 0);
            assert_true(size_of(block) >= sizes[i]);
            assert_int_equal(block[0] | block[sizes[i] - 1], 0);
            block[0] = block[sizes[i] - 1] = 1;
            release_block(block);
        }
    }
    empty_cache();
    assert_null(big_alloc((size_t)1 << 60, 16, false));
    assert_null(big_alloc(BIG_MIN, (size_t)1 << 60, false));
}

static void a_freed_block_is_used_again(void **state)
{
    (void)state;
    empty_cache();
    char *block = big_alloc(6 * MIB, 16, false);
    memset(block, 'x', 6 * MIB);
    release_block(block);
    assert_int_equal(big_stats().cached_bytes, 6 * MIB);
    uint64_t maps = os_counts[OS_MMAP], unmaps = os_counts[OS_MUNMAP];
    assert_ptr_equal(big_alloc(6 * MIB, 16, false), block);
    assert_int_equal(big_stats().cached_bytes, 0);
    assert_int_equal(os_counts[OS_MMAP], maps);
    assert_int_equal(os_counts[OS_MUNMAP], unmaps);
    /* Not asked for zeroes: nobody spent time on them. */
    assert_true(unit_all_bytes(block, 6 * MIB, 'x'));
    release_block(block);
    assert_ptr_equal(big_alloc(6 * MIB, 16, true), block);
    assert_true(unit_all_bytes(block, 6 * MIB, 0));
    release_block(block);
}

static void a_longer_block_is_split(void **state)
{
    (void)state;
    empty_cache();
    char *whole = big_alloc(16 * MIB, 16, false);
    memset(whole, 'x', 16 * MIB);
    release_block(whole);
    uint64_t maps = os_counts[OS_MMAP];
    char *first = big_alloc(3 * MIB, 16, true), *second = big_alloc(4 * MIB, 16, true);
    assert_ptr_equal(first, whole);
    assert_ptr_equal(second, whole + 4 * MIB);
    assert_int_equal(os_counts[OS_MMAP], maps);
    assert_true(unit_all_bytes(first, size_of(first), 0) || size_of(first) > 3 * MIB);
    assert_true(unit_all_bytes(first, 3 * MIB, 0));
    assert_true(unit_all_bytes(second, 4 * MIB, 0));
    struct big_stats stats = big_stats();
    assert_int_equal(stats.cached_bytes, 8 * MIB);
    assert_int_equal(stats.live_bytes, size_of(first) + size_of(second));
    release_block(first);
    release_block(second);
    assert_int_equal(big_stats().live_bytes, 0);
    assert_int_equal(big_stats().cached_bytes, 16 * MIB);
}

static void a_shorter_block_is_made_longer(void **state)
{
    (void)state;
    empty_cache();
    char *small = big_alloc(2 * MIB, 16, false);
    memset(small, 'x', 2 * MIB);
    release_block(small);
    uint64_t remaps = os_counts[OS_MREMAP];
    char *large = big_alloc(9 * MIB, 16, true);
    assert_int_equal(big_stats().cached_bytes, 0);
    assert_true(os_counts[OS_MREMAP] > remaps);
    assert_int_equal((uintptr_t)large % REGION_SIZE, 0);
    assert_true(unit_all_bytes(large, 9 * MIB, 0));
    if (large != small)
        assert_null(page_map_lookup(small));
    release_block(large);
}

static void more_alignment_than_the_cache_has(void **state)
{
    (void)state;
    empty_cache();
    char *block = big_alloc(4 * MIB, 16, false);
    release_block(block);
    char *aligned = big_alloc(4 * MIB, 64 * MIB, false);
    assert_int_equal((uintptr_t)aligned % (64 * MIB), 0);
    /* What was cached went back when more was mapped. */
    assert_int_equal(big_stats().cached_bytes, 0);
    release_block(aligned);
}

static void the_oldest_leave_first(void **state)
{
    (void)state;
    char *block[4];
    empty_cache();
    for (int i = 0; i < 4; i++)
        block[i] = big_alloc(2 * MIB, 16, false);
    for (int i = 0; i < 4; i++)
        release_block(block[i]);
    assert_int_equal(big_cache_evict(0), 0);
    assert_int_equal(big_cache_evict(3 * MIB), 4 * MIB);
    assert_null(page_map_lookup(block[0]));
    assert_null(page_map_lookup(block[1]));
    assert_non_null(page_map_lookup(block[2]));
    assert_int_equal(big_stats().cached_bytes, 4 * MIB);
    assert_int_equal(big_cache_evict(1), 2 * MIB);
    assert_null(page_map_lookup(block[2]));
    assert_non_null(page_map_lookup(block[3]));
}

/* As much expires as nobody needed since the last time, whichever blocks were taken meanwhile. */
static void unused_bytes_expire(void **state)
{
    (void)state;
    char *block[3];
    empty_cache();
    big_cache_expire();
    for (int i = 0; i < 3; i++)
        block[i] = big_alloc(2 * MIB, 16, false);
    for (int i = 0; i < 3; i++)
        release_block(block[i]);
    assert_int_equal(big_cache_expire(), 0);
    block[0] = big_alloc(2 * MIB, 16, false);
    block[1] = big_alloc(2 * MIB, 16, false);
    release_block(block[0]);
    release_block(block[1]);
    assert_int_equal(big_stats().cached_bytes, 6 * MIB);
    assert_int_equal(big_cache_expire(), 2 * MIB);
    assert_int_equal(big_cache_expire(), 4 * MIB);
    assert_int_equal(big_cache_expire(), 0);
    assert_int_equal(big_stats().cached_bytes, 0);
}

static void the_cache_is_bounded_in_bytes(void **state)
{
    (void)state;
    static const long bounds[] = {0, 3, 8, 64};
    char *block[10];
    for (size_t b = 0; b < ARRAY_LENGTH(bounds); b++) {
        empty_cache();
        policy.big_cache_mib = bounds[b];
        for (int i = 0; i < 10; i++)
            block[i] = big_alloc(2 * MIB, 16, false);
        for (int i = 0; i < 10; i++) {
            release_block(block[i]);
            CHECK(big_stats().cached_bytes <= (size_t)bounds[b] * MIB);
        }
        size_t whole = size_min((size_t)bounds[b] * MIB, 20 * MIB) / (2 * MIB) * (2 * MIB);
        assert_int_equal(big_stats().cached_bytes, whole);
    }
}

static void resizing_keeps_contents(void **state)
{
    (void)state;
    empty_cache();
    char *block = big_alloc(4 * MIB, 16, false);
    memset(block, 'x', 4 * MIB);
    char *wall = os_map(2 * MIB, 2 * MIB, block + 4 * MIB);
    char *larger = big_resize(big_of(block), 40 * MIB);
    assert_non_null(larger);
    if (wall == block + 4 * MIB)
        assert_ptr_not_equal(larger, block);
    assert_int_equal(size_of(larger), 40 * MIB);
    assert_true(unit_all_bytes(larger, 4 * MIB, 'x'));
    assert_true(unit_all_bytes(larger + 4 * MIB, 36 * MIB, 0));
    if (larger != block)
        assert_null(page_map_lookup(block));
    assert_ptr_equal(big_resize(big_of(larger), 3 * MIB), larger);
    assert_int_equal(size_of(larger), 3 * MIB);
    assert_true(unit_all_bytes(larger, 3 * MIB, 'x'));
    /* A little less is not worth a system call. */
    assert_ptr_equal(big_resize(big_of(larger), 3 * MIB - 4096), larger);
    assert_true(size_of(larger) >= 3 * MIB - 4096);
    assert_int_equal(big_stats().live_bytes, size_of(larger));
    release_block(larger);
    assert_true(os_unmap(wall, 2 * MIB));
}

static void step(struct held *slot, uint64_t *random)
{
    if (!slot->block) {
        bool zero = unit_below(random, 2);
        slot->size = BIG_MIN + unit_random(random) % (8 * MIB);
        slot->block = big_alloc(slot->size, 16, zero);
        CHECK(slot->block && (uintptr_t)slot->block % REGION_SIZE == 0);
        if (zero)
            CHECK(unit_all_bytes(slot->block, slot->size, 0));
    } else if (unit_below(random, 3)) {
        CHECK(unit_all_bytes(slot->block, slot->size, slot->fill));
        release_block(slot->block);
        slot->block = NULL;
        return;
    } else {
        size_t size = BIG_MIN + unit_random(random) % (8 * MIB);
        char *moved = big_resize(big_of(slot->block), size);
        CHECK(moved);
        CHECK(unit_all_bytes(moved, size_min(size, slot->size), slot->fill));
        slot->block = moved;
        slot->size = size;
    }
    CHECK(size_of(slot->block) >= slot->size);
    slot->fill = (unsigned char)(1 + unit_below(random, 255));
    memset(slot->block, slot->fill, slot->size);
}

static void random_steps_keep_contents(void **state)
{
    (void)state;
    uint64_t random = 41;
    struct held held[BLOCKS] = {{0}};
    policy.big_cache_mib = 24;
    empty_cache();
    for (int i = 0; i < STEPS; i++) {
        step(&held[unit_below(&random, BLOCKS)], &random);
        if (unit_below(&random, 50) == 0)
            big_cache_evict(unit_below(&random, 8 * MIB));
        size_t live = 0, blocks = 0;
        for (int b = 0; b < BLOCKS; b++) {
            live += held[b].block ? size_of(held[b].block) : 0;
            blocks += held[b].block != NULL;
        }
        struct big_stats stats = big_stats();
        CHECK(stats.live_bytes == live && stats.live_blocks == blocks);
        CHECK(stats.allocated - stats.freed == blocks);
    }
    for (int b = 0; b < BLOCKS; b++)
        if (held[b].block)
            release_block(held[b].block);
    empty_cache();
}

static void free_twice(void *block)
{
    struct big *big = big_of(block);
    big_free(big, block, "free");
    big_free(big, block, "free");
}

static void free_inside(void *block)
{
    big_free(big_of(block), (char *)block + 4096, "free");
}

static void free_behind(void *block)
{
    big_free(big_of(block), (char *)block + 8 * MIB, "free");
}

static void misuse_is_named(void **state)
{
    (void)state;
    char line[200];
    policy.big_cache_mib = 64;
    char *block = big_alloc(4 * MIB, 16, false);
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", (void *)block);
    unit_expect_abort(free_twice, block, line);
    snprintf(
        line, sizeof line,
        "hakmem: free(): invalid pointer %p: inside a block of 4194304 bytes at %p",
        (void *)(block + 4096), (void *)block);
    unit_expect_abort(free_inside, block, line);
    snprintf(
        line, sizeof line, "hakmem: free(): invalid pointer %p: not allocated by hakmem",
        (void *)(block + 8 * MIB));
    unit_expect_abort(free_behind, block, line);
    release_block(block);
}

static uint64_t advice_of_alloc(size_t size, bool zero, char **block)
{
    uint64_t before = os_counts[OS_MADVISE];
    assert_non_null(*block = big_alloc(size, 16, zero));
    return os_counts[OS_MADVISE] - before;
}

static uint64_t advice_of_resize(char **block, size_t size)
{
    uint64_t before = os_counts[OS_MADVISE];
    assert_non_null(*block = big_resize(big_of(*block), size));
    return os_counts[OS_MADVISE] - before;
}

static void huge_pages_are_for_16_mib_and_more(void **state)
{
    (void)state;
    policy.big_cache_mib = 0;
    empty_cache();
    assert_int_equal(big_stats().live_bytes, 0);
    char *first, *second, *zeroed;
    assert_int_equal(advice_of_alloc(8 * MIB, false, &first), 0);
    assert_int_equal(advice_of_alloc(8 * MIB, false, &second), 1);
    release_block(second);
    assert_int_equal(advice_of_resize(&first, 15 * MIB), 0);
    assert_int_equal(advice_of_resize(&first, 16 * MIB), 1);
    assert_int_equal(advice_of_resize(&first, 32 * MIB), 0);
    assert_int_equal(advice_of_resize(&first, 20 * MIB), 0);
    assert_int_equal(advice_of_alloc(16 * MIB, true, &zeroed), 0);
    assert_int_equal(advice_of_resize(&zeroed, 32 * MIB), 0);
    release_block(zeroed);
    policy.huge_pages = 0;
    assert_int_equal(advice_of_alloc(16 * MIB, false, &second), 0);
    release_block(second);
    release_block(first);
    policy.huge_pages = 1;
    policy.big_cache_mib = 64;
}

static void cached_mappings_keep_their_huge_pages(void **state)
{
    (void)state;
    empty_cache();
    char *first, *second;
    assert_int_equal(advice_of_alloc(40 * MIB, false, &first), 1);
    release_block(first);
    assert_int_equal(advice_of_alloc(20 * MIB, false, &first), 0);
    assert_int_equal(advice_of_alloc(20 * MIB, false, &second), 0);
    release_block(first);
    release_block(second);
    empty_cache();
    /* The mapping of a sparse block asks for them when it holds another block. */
    assert_int_equal(advice_of_alloc(20 * MIB, true, &first), 0);
    release_block(first);
    assert_int_equal(advice_of_alloc(20 * MIB, false, &first), 1);
    release_block(first);
    empty_cache();
    /* A mapping is made longer: one call for huge pages, or one to clear it. */
    for (int zero = 0; zero <= 1; zero++) {
        assert_int_equal(advice_of_alloc(8 * MIB, false, &first), 0);
        release_block(first);
        assert_int_equal(advice_of_alloc(16 * MIB, zero, &first), 1);
        release_block(first);
        empty_cache();
    }
}

/* behaviour 39: without address space the block stays as it was, and the cache still serves. */
static void resize_without_memory(void *argument)
{
    (void)argument;
    struct rlimit none = {4096, 4096};
    char *block = big_alloc(4 * MIB, 16, false), *cached = big_alloc(6 * MIB, 16, false);
    memset(block, 'x', 4 * MIB);
    release_block(cached);
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    CHECK(!big_resize(big_of(block), 64 * MIB));
    CHECK(size_of(block) == 4 * MIB);
    CHECK(unit_all_bytes(block, 4 * MIB, 'x'));
    CHECK(big_alloc(6 * MIB, 16, true) == cached);
    CHECK(!big_alloc(64 * MIB, 16, false));
    release_block(block);
    CHECK(!big_alloc(64 * MIB, 16, false));
}

static void no_memory_changes_nothing(void **state)
{
    (void)state;
    policy.big_cache_mib = 64;
    empty_cache();
    unit_in_child(resize_without_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_alignments),
        cmocka_unit_test(a_freed_block_is_used_again),
        cmocka_unit_test(a_longer_block_is_split),
        cmocka_unit_test(a_shorter_block_is_made_longer),
        cmocka_unit_test(more_alignment_than_the_cache_has),
        cmocka_unit_test(the_oldest_leave_first),
        cmocka_unit_test(unused_bytes_expire),
        cmocka_unit_test(the_cache_is_bounded_in_bytes),
        cmocka_unit_test(resizing_keeps_contents),
        cmocka_unit_test(random_steps_keep_contents),
        cmocka_unit_test(misuse_is_named),
        cmocka_unit_test(huge_pages_are_for_16_mib_and_more),
        cmocka_unit_test(cached_mappings_keep_their_huge_pages),
        cmocka_unit_test(no_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
