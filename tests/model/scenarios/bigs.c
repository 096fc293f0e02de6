/* Big blocks and the BigCache. */
#include <string.h>

#include "engine/model.h"
#include "map/metadata.h"
#include "map/page_map.h"
#include "span/big.h"
#include "span/big_part.h"

enum { BIG = 2 << 20 };

static char *blocks[4];

static struct big *big_of(void *block)
{
    return (struct big *)page_map_lookup(block);
}

static char *take_big(size_t size)
{
    char *block = big_alloc(0, size, 1, false);
    CHECK(block);
    CHECK(big_size(big_of(block), block, "free") >= size);
    *(volatile char *)block = 1;
    return block;
}

static void give_big(void *block)
{
    *(volatile char *)block = 1;
    big_free(big_of(block), block, "free");
}

static void one_in_use_one_cached(void)
{
    blocks[0] = take_big(BIG);
    blocks[1] = take_big(BIG);
    give_big(blocks[1]);
}

static void take_2(void)
{
    blocks[2] = take_big(BIG);
}

static void give_0(void)
{
    give_big(blocks[0]);
}

static void evict_all(void)
{
    big_cache_evict(SIZE_MAX);
}

/* What is live is what was taken and not given; and all that is cached can be had. */
static void consistent(void)
{
    struct big_stats stats = big_stats();
    CHECK(stats.live_blocks * BIG == stats.live_bytes);
    big_cache_evict(SIZE_MAX);
    CHECK(big_stats().cached_bytes == 0);
}

SCENARIO(bigs_cache) = {
    .name = "bigs_cache",
    .about = "one takes from the cache, one frees, one evicts",
    .prepare = one_in_use_one_cached,
    .thread = {take_2, give_0, evict_all},
    .finish = consistent};

static void take_3(void)
{
    blocks[3] = take_big(BIG);
}

static void count(void)
{
    CHECK(big_stats().cached_bytes <= BIG);
}

SCENARIO(bigs_compete) = {
    .name = "bigs_compete",
    .about = "two want the one mapping in the cache, one counts",
    .prepare = one_in_use_one_cached,
    .thread = {take_2, take_3, count},
    .finish = consistent};

static void expire(void)
{
    big_cache_unused(IDLE_SINCE_TICK);
    big_cache_evict(BIG / 2);
}

SCENARIO(bigs_expire) = {
    .name = "bigs_expire",
    .about = "a tick purges half of a mapping while one is taken",
    .prepare = one_in_use_one_cached,
    .thread = {expire, take_2, give_0},
    .finish = consistent};

/* A longer mapping serves, or a shorter one moves to be longer. */
enum { LONG = 3 * BIG };

static void one_long_cached(void)
{
    give_big(take_big(LONG));
}

static void take_long(void)
{
    give_big(take_big(LONG));
}

static void all_cached(void)
{
    big_cache_evict(SIZE_MAX);
    CHECK(big_stats().cached_bytes == 0);
}

SCENARIO(bigs_longer) = {
    .name = "bigs_longer",
    .about = "a cached mapping serves a shorter block, or is made longer",
    .prepare = one_long_cached,
    .thread = {take_2, take_long},
    .finish = all_cached};

/* The lists of the cache are as wide as a region, and both lengths are on one. */
static void one_in_between(void)
{
    blocks[0] = take_big(BIG + BIG / 2);
}

static void take_less(void)
{
    blocks[2] = take_big(BIG + BIG / 4);
}

/* What is made longer was shorter. */
static void nothing_was_cut(void)
{
    CHECK(big_of(blocks[2])->dirty <= big_of(blocks[2])->mapped);
    all_cached();
}

SCENARIO(bigs_shorter) = {
    .name = "bigs_shorter",
    .about = "a mapping is freed between the looks for a long and a shorter one",
    .prepare = one_in_between,
    .thread = {take_less, give_0},
    .finish = nothing_was_cut};

static void take_2_in_another_part(void)
{
    blocks[2] = big_alloc(1, BIG, 1, false);
    CHECK(blocks[2]);
    *(volatile char *)blocks[2] = 1;
}

SCENARIO(bigs_parts) = {
    .name = "bigs_parts",
    .about = "a shard takes from the part of another, which frees",
    .prepare = one_in_use_one_cached,
    .thread = {take_2_in_another_part, give_0},
    .finish = consistent};

static void grow_0(void)
{
    CHECK(big_resize(big_of(blocks[0]), 2 * BIG));
}

SCENARIO(bigs_resize) = {
    .name = "bigs_resize",
    .about = "a block moves to grow, while others take and evict",
    .prepare = one_in_use_one_cached,
    .thread = {grow_0, take_2, evict_all},
    .finish = all_cached,
    .preemptions_max = 4};

static void one_with_a_rest(void)
{
    give_big(take_big(LONG));
    blocks[0] = take_big(BIG);
    CHECK(big_of(blocks[0])->rest == LONG - BIG);
}

static void grow_and_free_0(void)
{
    char *block = big_resize(big_of(blocks[0]), 2 * BIG);
    CHECK(block);
    give_big(block);
}

static void evict_some(void)
{
    big_cache_evict(BIG / 2);
}

SCENARIO(bigs_rest_freed) = {
    .name = "bigs_rest_freed",
    .about = "a block is freed while its rest goes",
    .prepare = one_with_a_rest,
    .thread = {give_0, evict_some, evict_all},
    .finish = all_cached};

SCENARIO(bigs_rest_taken) = {
    .name = "bigs_rest_taken",
    .about = "a block grows into its rest while that goes",
    .prepare = one_with_a_rest,
    .thread = {grow_and_free_0, evict_some, take_long},
    .finish = all_cached,
    .preemptions_max = 4};

static void free_0_twice(void)
{
    big_free(big_of(blocks[0]), blocks[0], "free");
}

SCENARIO(bigs_freed_twice) = {
    .name = "bigs_freed_twice",
    .about = "of two frees of a big block one is noticed",
    .prepare = one_in_use_one_cached,
    .thread = {free_0_twice, free_0_twice},
    .aborts = true};

/* A look at an address that nobody gave the thread, while a block is made there. */
static void look_for_2(void)
{
    struct region *region = page_map_lookup(model_region(2));
    if (region)
        CHECK(region->kind == REGION_BIG && region->base == model_region(2));
}

static void both_in_use(void)
{
    blocks[0] = take_big(BIG);
    blocks[1] = take_big(BIG);
}

SCENARIO(bigs_lookup) = {
    .name = "bigs_lookup",
    .about = "a big block is registered while two others look for it",
    .prepare = both_in_use,
    .thread = {take_2, look_for_2, look_for_2}};
