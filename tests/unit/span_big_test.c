/* span/big: mappings of their own and the BigCache (behaviours 11, 13, 23, 24). */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "api/block.h"
#include "base/poison.h"
#include "base/policy.h"
#include "checks/checks.h"
#include "map/metadata.h"
#include "os/limits.h"
#include "os/os.h"
#include "span/big.h"
#include "span/big_part.h"

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
    struct big *big = (struct big *)region;
    CHECK(big->dirty <= big->mapped + big->rest);
    return big;
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
            char *block = big_alloc(0, sizes[i], alignment, true);
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % size_max(alignment, os_page_size()), 0);
            assert_true(size_of(block) >= sizes[i]);
            assert_int_equal(block[0] | block[sizes[i] - 1], 0);
            block[0] = block[sizes[i] - 1] = 1;
            release_block(block);
        }
    }
    empty_cache();
    assert_null(big_alloc(0, (size_t)1 << 60, 16, false));
    assert_null(big_alloc(0, BIG_MIN, (size_t)1 << 60, false));
}

static void a_freed_block_is_used_again(void **state)
{
    (void)state;
    empty_cache();
    char *block = big_alloc(0, 6 * MIB, 16, false);
    memset(block, 'x', 6 * MIB);
    release_block(block);
    assert_int_equal(big_stats().cached_bytes, 6 * MIB);
    uint64_t maps = os_counts[OS_MMAP], unmaps = os_counts[OS_MUNMAP];
    assert_ptr_equal(big_alloc(0, 6 * MIB, 16, false), block);
    assert_int_equal(big_stats().cached_bytes, 0);
    assert_int_equal(os_counts[OS_MMAP], maps);
    assert_int_equal(os_counts[OS_MUNMAP], unmaps);
    /* Not asked for zeroes: nobody spent time on them. */
    assert_true(unit_all_bytes(block, 6 * MIB, 'x'));
    release_block(block);
    assert_ptr_equal(big_alloc(0, 6 * MIB, 16, true), block);
    assert_true(unit_all_bytes(block, 6 * MIB, 0));
    release_block(block);
}

/* What is behind the block stays cached, but for nobody else. */
static void a_longer_mapping_serves_whole(void **state)
{
    (void)state;
    empty_cache();
    char *whole = big_alloc(0, 16 * MIB, 16, false);
    memset(whole, 'x', 16 * MIB);
    release_block(whole);
    uint64_t maps = os_counts[OS_MMAP];
    char *first = big_alloc(0, 3 * MIB, 16, true);
    assert_ptr_equal(first, whole);
    assert_int_equal(os_counts[OS_MMAP], maps);
    assert_int_equal(size_of(first), 3 * MIB);
    assert_true(unit_all_bytes(first, 3 * MIB, 0));
    assert_int_equal(big_stats().cached_bytes, 13 * MIB);
    assert_int_equal(big_stats().live_bytes, 3 * MIB);
    big_cache_check();
    release_block(first);
    assert_ptr_equal(big_alloc(0, 16 * MIB, 16, true), whole);
    assert_true(unit_all_bytes(whole, 16 * MIB, 0));
    release_block(whole);
    first = big_alloc(0, 3 * MIB, 16, false);
    char *second = big_alloc(0, 4 * MIB, 16, true);
    assert_true(second < whole || second >= whole + 16 * MIB);
    assert_true(unit_all_bytes(second, 4 * MIB, 0));
    release_block(first);
    release_block(second);
    big_cache_check();
    assert_int_equal(big_stats().live_bytes, 0);
    assert_in_range(big_stats().cached_bytes, 16 * MIB, 20 * MIB);
    empty_cache();
}

static void a_shorter_block_is_made_longer(void **state)
{
    (void)state;
    empty_cache();
    char *small = big_alloc(0, 5 * MIB, 16, false);
    memset(small, 'x', 5 * MIB);
    release_block(small);
    uint64_t remaps = os_counts[OS_MREMAP];
    char *large = big_alloc(0, 9 * MIB, 16, true);
    assert_int_equal(big_stats().cached_bytes, 0);
    assert_true(os_counts[OS_MREMAP] > remaps);
    assert_true(unit_all_bytes(large, 9 * MIB, 0));
    if (large != small)
        assert_null(page_map_lookup(small));
    release_block(large);
    /* One of less than a quarter of the size stays for those that it fits. */
    remaps = os_counts[OS_MREMAP];
    char *longer = big_alloc(0, 50 * MIB, 16, false);
    assert_int_equal(os_counts[OS_MREMAP], remaps);
    release_block(longer);
}

static void more_alignment_than_the_cache_has(void **state)
{
    (void)state;
    /* Who asks for whole pages gets one more. */
    size_t size = 4 * MIB - os_page_size();
    empty_cache();
    char *block = big_alloc(0, 4 * MIB, 16, false);
    release_block(block);
    bool fits = (uintptr_t)block % (64 * MIB) == 0;
    char *aligned = big_alloc(0, size, 64 * MIB, false);
    assert_int_equal((uintptr_t)aligned % (64 * MIB), 0);
    assert_true(fits == (aligned == block));
    /* One that happens to be aligned serves who wants it. */
    release_block(aligned);
    assert_ptr_equal(big_alloc(0, size, 64 * MIB, false), aligned);
    release_block(aligned);
}

static void the_oldest_leave_first(void **state)
{
    (void)state;
    char *block[4];
    empty_cache();
    for (int i = 0; i < 4; i++) {
        block[i] = big_alloc(0, 2 * MIB, 16, false);
        memset(block[i], 'x', 2 * MIB);
    }
    for (int i = 0; i < 4; i++)
        release_block(block[i]);
    assert_int_equal(big_cache_evict(0), 0);
    assert_int_equal(big_cache_evict(3 * MIB), 3 * MIB);
    assert_int_equal(big_stats().cached_bytes, 5 * MIB);
    /* The first one is unmapped; addresses and a half of the second one stay. */
    assert_null(page_map_lookup(block[0]));
    for (int i = 1; i < 3; i++)
        unpoison(block[i], 2 * MIB);
    assert_true(unit_all_bytes(block[1], MIB, 'x'));
    assert_true(unit_all_bytes(block[1] + MIB, MIB, 0));
    assert_true(unit_all_bytes(block[2], 2 * MIB, 'x'));
    big_cache_check();
    size_t cached = big_stats().cached_bytes;
    assert_int_equal(big_cache_evict(SIZE_MAX), cached);
    assert_int_equal(big_stats().cached_bytes, 0);
    big_cache_check();
    empty_cache();
    for (int i = 0; i < 4; i++)
        assert_null(page_map_lookup(block[i]));
}

/* A thread's blocks go back to where they came from, and other shards look there when their own
 * part has nothing. */
static void parts_are_apart(void **state)
{
    (void)state;
    empty_cache();
    char *first = big_alloc(1, 4 * MIB, 16, false), *second = big_alloc(2, 4 * MIB, 16, false);
    assert_int_equal(big_of(first)->part, 1);
    assert_int_equal(big_of(second)->part, 2);
    release_block(first);
    release_block(second);
    assert_ptr_equal(big_alloc(2, 4 * MIB, 16, false), second);
    assert_ptr_equal(big_alloc(1, 4 * MIB, 16, false), first);
    release_block(first);
    assert_ptr_equal(big_alloc(3, 4 * MIB, 16, false), first);
    assert_int_equal(big_of(first)->part, 1);
    big_cache_check();
    release_block(first);
    release_block(second);
    big_cache_check();
    empty_cache();
}

/* What is behind a block that was cut stays cached for it, and is there again without the system's
 * help, unless it went in between. */
static void resizing_uses_what_is_cached(void **state)
{
    (void)state;
    empty_cache();
    char *block = big_alloc(0, 16 * MIB, 16, false);
    memset(block, 'x', 16 * MIB);
    uint64_t calls = os_counts[OS_MREMAP] + os_counts[OS_MUNMAP] + os_counts[OS_MMAP];
    assert_ptr_equal(big_resize(big_of(block), 6 * MIB), block);
    assert_int_equal(size_of(block), 6 * MIB);
    assert_int_equal(big_stats().cached_bytes, 10 * MIB);
    assert_ptr_equal(big_resize(big_of(block), 9 * MIB), block);
    assert_int_equal(big_stats().cached_bytes, 7 * MIB);
    assert_ptr_equal(big_resize(big_of(block), 16 * MIB), block);
    assert_int_equal(big_stats().cached_bytes, 0);
    assert_int_equal(os_counts[OS_MREMAP] + os_counts[OS_MUNMAP] + os_counts[OS_MMAP], calls);
    assert_true(unit_all_bytes(block, 6 * MIB, 'x'));
    big_cache_check();
    assert_ptr_equal(big_resize(big_of(block), 6 * MIB), block);
    size_t gone = big_cache_evict(3 * MIB);
    assert_int_equal(gone, 3 * MIB);
    /* No huge page is cut in two. */
    assert_in_range(big_of(block)->rest, 6 * MIB, 7 * MIB);
    assert_int_equal(big_stats().cached_bytes, 10 * MIB - gone);
    big_cache_check();
    assert_int_equal(big_cache_evict(SIZE_MAX), 10 * MIB - gone);
    assert_int_equal(big_of(block)->rest, 0);
    big_cache_check();
    block = big_resize(big_of(block), 16 * MIB);
    assert_true(unit_all_bytes(block, 6 * MIB, 'x'));
    assert_true(unit_all_bytes(block + 6 * MIB, 10 * MIB, 0));
    release_block(block);
    empty_cache();
}

/* What is cut off by less than a mapping may be long goes back all the same. */
static void a_short_end_goes_back(void **state)
{
    (void)state;
    empty_cache();
    char *block = big_alloc(0, 4 * MIB - 64 * KIB, 16, false);
    memset(block, 'x', 4 * MIB - 64 * KIB);
    assert_ptr_equal(big_resize(big_of(block), 2 * MIB), block);
    assert_int_equal(big_of(block)->rest, 0);
    assert_true(unit_is_resident(block + MIB));
    if (!big_of(block)->huge) {
        assert_int_equal(os_resident_bytes(block + 2 * MIB, 2 * MIB - 64 * KIB), 0);
        assert_int_equal(size_of(block), 2 * MIB);
        assert_int_equal(big_stats().live_bytes, 2 * MIB);
    }
    assert_true(unit_all_bytes(block, 2 * MIB, 'x'));
    release_block(block);
    big_cache_check();
    empty_cache();
}

static size_t expire(void)
{
    return big_cache_evict(big_cache_unused(IDLE_SINCE_TICK));
}

/* As much expires as nobody needed since the last time, whichever blocks were taken meanwhile. */
static void unused_bytes_expire(void **state)
{
    (void)state;
    char *block[3];
    empty_cache();
    expire();
    for (int i = 0; i < 3; i++)
        block[i] = big_alloc(0, 2 * MIB, 16, false);
    for (int i = 0; i < 3; i++)
        release_block(block[i]);
    assert_int_equal(expire(), 0);
    block[0] = big_alloc(0, 2 * MIB, 16, false);
    block[1] = big_alloc(0, 2 * MIB, 16, false);
    release_block(block[0]);
    release_block(block[1]);
    assert_int_equal(big_stats().cached_bytes, 6 * MIB);
    assert_int_equal(expire(), 2 * MIB);
    assert_int_equal(expire(), 4 * MIB);
    assert_int_equal(expire(), 0);
    assert_int_equal(big_stats().cached_bytes, 0);
}

static size_t mib_kept_of_30(void)
{
    char *block[10];
    for (int i = 0; i < 10; i++)
        block[i] = big_alloc(0, 3 * MIB, 16, false);
    for (int i = 0; i < 10; i++)
        release_block(block[i]);
    return big_stats().cached_bytes / MIB;
}

static void the_cache_is_bounded_in_bytes(void **state)
{
    (void)state;
    static const long bounds[] = {0, 3, 8, 64};
    char *block[10];
    policy.retain_percent = 0;
    for (size_t b = 0; b < ARRAY_LENGTH(bounds); b++) {
        empty_cache();
        policy.big_cache_mib = bounds[b];
        size_t bytes = 0;
        for (int i = 0; i < 10; i++) {
            block[i] = big_alloc(0, 2 * MIB, 16, false);
            bytes += size_of(block[i]);
        }
        big_cache_unused(IDLE_SINCE_TICK); /* a tick: nothing was taken lately */
        for (int i = 0; i < 10; i++) {
            release_block(block[i]);
            CHECK(big_stats().cached_bytes <= (size_t)bounds[b] * MIB);
        }
        assert_int_equal(big_stats().cached_bytes, size_min((size_t)bounds[b] * MIB, bytes));
    }
    /* And by a quarter of what was taken lately, until a tick forgets it; or by what is live. */
    policy.big_cache_mib = 8;
    empty_cache();
    char *lately = big_alloc(0, 40 * MIB, 16, false);
    assert_in_range(mib_kept_of_30(), 18, 24);
    assert_true(big_cache_unused(IDLE_SINCE_TICK) >= 9 * MIB);
    policy.retain_percent = 50; /* of the 40 that are live */
    assert_in_range(mib_kept_of_30(), 27, 28);
    policy.retain_percent = 25;
    policy.big_cache_mib = 64;
    release_block(lately);
    empty_cache();
}

static void resizing_keeps_contents(void **state)
{
    (void)state;
    empty_cache();
    char *block = big_alloc(0, 4 * MIB, 16, false);
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
    /* Not cut in the middle of a huge page. */
    size_t shorter = big_of(larger)->huge ? 4 * MIB : 3 * MIB;
    assert_ptr_equal(big_resize(big_of(larger), 3 * MIB), larger);
    assert_int_equal(size_of(larger), shorter);
    assert_true(unit_all_bytes(larger, 3 * MIB, 'x'));
    /* A little less is not worth a system call. */
    assert_ptr_equal(big_resize(big_of(larger), 3 * MIB - 4096), larger);
    assert_true(size_of(larger) >= 3 * MIB - 4096);
    assert_int_equal(big_stats().live_bytes, size_of(larger));
    release_block(larger);
    assert_true(os_unmap(wall, 2 * MIB));
}

/* Makes as many blocks mappings of their own as may be. */
static void use_up_cuts(void)
{
    enum { CUTS = 16384 };
    policy.big_cache_mib = 0;
    for (int i = 0; i < CUTS; i++) {
        char *block = big_alloc(0, 4 * MIB, 16, false);
        CHECK(block && big_resize(big_of(block), 2 * MIB) == block);
        CHECK(big_of(block)->own_mapping && size_of(block) == 2 * MIB);
    }
    policy.big_cache_mib = 64;
}

/* Beyond them a block gives its memory up, and keeps the addresses. */
static void shrink_without_cuts(void *argument)
{
    (void)argument;
    use_up_cuts();
    policy.big_cache_mib = 0;
    char *block = big_alloc(0, 65 * MIB, 16, false);
    struct big *big = big_of(block);
    memset(block, 'x', 65 * MIB);
    CHECK(big_resize(big, 40 * MIB) == block && !big->own_mapping);
    CHECK(size_of(block) >= 65 * MIB);
    CHECK(!unit_is_resident(block + 60 * MIB) && unit_is_resident(block + 39 * MIB));
    uint64_t calls = os_counts[OS_MUNMAP] + os_counts[OS_MREMAP];
    CHECK(big_resize(big, 60 * MIB) == block);
    CHECK(os_counts[OS_MUNMAP] + os_counts[OS_MREMAP] == calls);
    CHECK(unit_all_bytes(block, 40 * MIB, 'x'));
    release_block(block);
    big_cache_check();
}

static void a_block_that_cannot_be_cut_gives_memory_up(void **state)
{
    (void)state;
    unit_in_child(shrink_without_cuts, NULL);
}

static void step(struct held *slot, uint64_t *random)
{
    if (!slot->block) {
        bool zero = unit_below(random, 2);
        slot->size = BIG_MIN + unit_random(random) % (8 * MIB);
        slot->block = big_alloc(0, slot->size, 16, zero);
        CHECK(slot->block && (uintptr_t)slot->block % os_page_size() == 0);
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
        CHECK(unit_all_bytes(moved ? moved : slot->block, size_min(size, slot->size), slot->fill));
        /* The system may refuse to move it: the caller copies then. */
        if (!moved) {
            moved = big_alloc(0, size, 16, false);
            release_block(slot->block);
        }
        CHECK(moved);
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
        big_cache_check();
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
    empty_cache();
    char *block = big_alloc(0, 4 * MIB, 16, false);
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

/* ---- Borders --------------------------------------------------------------------------------- */

/* A mapping longer than the bound goes back at once, and what others use stays. */
static void a_block_beyond_the_bound_drives_nobody_out(void **state)
{
    (void)state;
    policy.big_cache_mib = 64;
    empty_cache();
    char *small = big_alloc(0, 4 * MIB, 16, false);
    release_block(small);
    for (int i = 0; i < 5; i++) {
        char *large = big_alloc(0, 65 * MIB, 16, false);
        large[0] = 1;
        big_cache_unused(IDLE_SINCE_TICK); /* a tick: nothing was taken lately */
        release_block(large);
    }
    assert_ptr_equal(big_alloc(0, 4 * MIB, 16, false), small);
    release_block(small);
}

static unsigned count_mappings(void)
{
    static char buffer[1 << 16];
    unsigned count = 0;
    int fd = open("/proc/self/maps", O_RDONLY);
    CHECK(fd >= 0);
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;)
        for (ssize_t i = 0; i < got; i++)
            count += buffer[i] == '\n';
    close(fd);
    return count;
}

/* Neighbours in the address space are one mapping to the system, which limits their number. */
static void many_blocks_are_few_mappings(void **state)
{
    (void)state;
    enum { MANY = 2000 };
    static char *blocks[MANY];
    unsigned before = count_mappings();
    for (int i = 0; i < MANY; i++)
        CHECK((blocks[i] = big_alloc(0, 2200000, 16, false)) != NULL);
    unsigned after = count_mappings();
    CHECK(after < before + MANY / 10);
    for (int i = 0; i < MANY; i++)
        release_block(blocks[i]);
    empty_cache();
}

/* A short block with a large alignment has the 2 MiB that the page map wants. */
static void no_two_blocks_start_in_the_same_2_mib(void **state)
{
    (void)state;
    char *blocks[40];
    empty_cache();
    for (size_t i = 0; i < ARRAY_LENGTH(blocks); i++)
        blocks[i] = big_alloc(0, i % 2 ? 100 : BIG_MIN + 4096, i % 2 ? 2 * MIB : 16, false);
    for (size_t i = 0; i < ARRAY_LENGTH(blocks); i++) {
        CHECK(size_of(blocks[i]) >= REGION_SIZE);
        release_block(blocks[i]);
    }
    empty_cache();
}

/* A fork in the middle of a call (from a signal handler) makes the lists anew while the call has a
 * mapping in its hand: that must not get into the cache twice. */
static void repair_leaves_what_somebody_works_on(void **state)
{
    (void)state;
    empty_cache();
    char *blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = big_alloc(0, 4 * MIB, 16, false);
    for (int i = 0; i < 3; i++)
        release_block(blocks[i]);
    struct big *taken = big_cache_take(0, 4 * MIB, 16);
    assert_non_null(taken);
    assert_true(big_cache_retire(taken, taken->region.base)); /* as in the middle of big_free */
    big_cache_repair(0);
    big_cache_check();
    assert_int_equal(big_cache_bytes(), 8 * MIB);
    taken->dirty = taken->mapped;
    big_cache_put(taken);
    big_cache_check();
    assert_int_equal(big_cache_bytes(), 12 * MIB);
    empty_cache();
}

/* Fiber stacks have pages that nobody may touch, at an end mostly. */
static void a_block_with_guard_pages_is_freed(void **state)
{
    (void)state;
    char *block = big_alloc(0, 5 * MIB, os_page_size(), false);
    assert_int_equal(mprotect(block, 4 * os_page_size(), PROT_NONE), 0);
    assert_int_equal(
        mprotect(block + 5 * MIB - 4 * os_page_size(), 4 * os_page_size(), PROT_NONE), 0);
    release_block(block);
    empty_cache();
}

/* The 2 MiB in which a big block starts or ends may hold memory of others. */
static void neighbours_are_foreign(void **state)
{
    (void)state;
    char *block = big_alloc(0, 5 * MIB, 16, false);
    assert_int_equal(block_find(block).kind, BLOCK_BIG);
    char *unit = (char *)round_down((uintptr_t)block, REGION_SIZE);
    assert_int_equal(block_find(unit + REGION_SIZE - 1).kind, BLOCK_BIG);
    if (unit != block)
        assert_int_not_equal(block_find(block - 1).kind, BLOCK_BIG);
    assert_int_not_equal(block_find(block + size_of(block)).kind, BLOCK_BIG);
    release_block(block);
}

/* behaviour 39: without address space the block stays as it was, and the cache still serves. */
static void resize_without_memory(void *argument)
{
    (void)argument;
    struct rlimit none = {4096, 4096};
    char *block = big_alloc(0, 4 * MIB, 16, false), *cached = big_alloc(0, 6 * MIB, 16, false);
    memset(block, 'x', 4 * MIB);
    release_block(cached);
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    CHECK(!big_resize(big_of(block), 64 * MIB));
    CHECK(size_of(block) == 4 * MIB);
    CHECK(unit_all_bytes(block, 4 * MIB, 'x'));
    CHECK(big_alloc(0, 6 * MIB, 16, true) == cached);
    CHECK(!big_alloc(0, 64 * MIB, 16, false));
    release_block(block);
    CHECK(!big_alloc(0, 64 * MIB, 16, false));
}

static void no_memory_changes_nothing(void **state)
{
    (void)state;
    policy.big_cache_mib = 64;
    empty_cache();
    unit_in_child(resize_without_memory, NULL);
}

/* A rest of which no mapping can be made, since there is no memory for a record, bars nobody. */
static void evict_without_records(void *argument)
{
    (void)argument;
    struct rlimit none = {4096, 4096};
    char *younger = big_alloc(0, 6 * MIB, 16, false), *whole = big_alloc(0, 12 * MIB, 16, false);
    release_block(whole);
    char *block = big_alloc(0, 4 * MIB, 16, false);
    CHECK(block == whole && big_of(block)->rest == 8 * MIB);
    release_block(younger);
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    big_parts[0].spares.first = NULL;
    while (metadata_alloc(sizeof(struct big)))
        continue;
    CHECK(big_cache_evict(6 * MIB) == 6 * MIB && big_of(block)->rest == 8 * MIB);
    /* There is a record now. */
    CHECK(big_cache_evict(SIZE_MAX) == 8 * MIB && big_of(block)->rest == 0);
    big_cache_check();
}

static void a_rest_without_a_record_stays(void **state)
{
    (void)state;
    policy.big_cache_mib = 64;
    empty_cache();
    unit_in_child(evict_without_records, NULL);
}

/* Below a limit of addresses the system may refuse a move whose target it has already. */
static void move_below_a_limit(void *argument)
{
    (void)argument;
    char *block = big_alloc(0, 24 * MIB, REGION_SIZE, false);
    char *fence = big_alloc(0, 4 * MIB, 16, false);
    big_of(block)->huge = true;
    memset(block, 'x', 24 * MIB);
    size_t mapped = os_footprint_read("").address_bytes;
    struct rlimit limit = {mapped + 45 * MIB, mapped + 45 * MIB};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(!big_resize(big_of(block), 80 * MIB));
    CHECK((block = big_resize(big_of(block), 40 * MIB)) != NULL);
    CHECK(os_footprint_read("").address_bytes < mapped + 17 * MIB);
    CHECK(unit_all_bytes(block, 24 * MIB, 'x') && fence);
}

static void a_refused_move_loses_no_addresses(void **state)
{
    (void)state;
    policy.big_cache_mib = 64;
    empty_cache();
    unit_in_child(move_below_a_limit, NULL);
}

/* As where a process has as many mappings as it may: what the system does not unmap gives at least
 * its memory back, all of it. */
static void evict_without_unmapping(void *argument)
{
    (void)argument;
    enum { COUNT = 4 };
    char *blocks[COUNT], *between[COUNT];
    policy.big_cache_mib = 64;
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = big_alloc(0, 3 * MIB, 16, false);
        between[i] = big_alloc(0, 2 * MIB, 16, false);
        memset(blocks[i], 'x', 3 * MIB);
    }
    for (int i = 0; i < COUNT; i++)
        release_block(blocks[i]);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {ARRAY_LENGTH(code), code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return; /* an emulator has no filters */
    CHECK(big_cache_evict(SIZE_MAX) == COUNT * 3 * MIB);
    CHECK(big_cache_bytes() == 0 && big_cache_mapped() == COUNT * 3 * MIB);
    for (int i = 0; i < COUNT; i++)
        CHECK(!unit_is_resident(blocks[i]) && between[i]);
    CHECK(big_cache_evict(SIZE_MAX) == 0);
    big_cache_check();
}

static void what_stays_mapped_gives_memory_up(void **state)
{
    (void)state;
    empty_cache();
    unit_in_child(evict_without_unmapping, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_alignments),
        cmocka_unit_test(a_freed_block_is_used_again),
        cmocka_unit_test(a_longer_mapping_serves_whole),
        cmocka_unit_test(a_shorter_block_is_made_longer),
        cmocka_unit_test(more_alignment_than_the_cache_has),
        cmocka_unit_test(the_oldest_leave_first),
        cmocka_unit_test(parts_are_apart),
        cmocka_unit_test(resizing_uses_what_is_cached),
        cmocka_unit_test(a_short_end_goes_back),
        cmocka_unit_test(unused_bytes_expire),
        cmocka_unit_test(the_cache_is_bounded_in_bytes),
        cmocka_unit_test(resizing_keeps_contents),
        cmocka_unit_test(a_block_that_cannot_be_cut_gives_memory_up),
        cmocka_unit_test(what_stays_mapped_gives_memory_up),
        cmocka_unit_test(random_steps_keep_contents),
        cmocka_unit_test(misuse_is_named),
        cmocka_unit_test(a_block_beyond_the_bound_drives_nobody_out),
        cmocka_unit_test(many_blocks_are_few_mappings),
        cmocka_unit_test(no_two_blocks_start_in_the_same_2_mib),
        cmocka_unit_test(repair_leaves_what_somebody_works_on),
        cmocka_unit_test(a_block_with_guard_pages_is_freed),
        cmocka_unit_test(neighbours_are_foreign),
        cmocka_unit_test(no_memory_changes_nothing),
        cmocka_unit_test(a_rest_without_a_record_stays),
        cmocka_unit_test(a_refused_move_loses_no_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
