/* A program of some age: check_interface.py compiles it against the header of the first release of
 * this minor version (0.1/), against today's, and against one of the future
 * (PROGRAM_OF_THE_FUTURE), and runs each with a library of another age. Prints what it found, one
 * "name value" a line; exits with 1 when something is not as it was promised to a program of its
 * age. */
#include <hakmem/hakmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNTOUCHED = 0xee, GUARD_BYTES = 512 };

/* The numbers are compiled into programs. */
_Static_assert(HAKMEM_TIER_TINY == 0 && HAKMEM_TIER_MID == 1, "tiers keep their numbers");
_Static_assert(HAKMEM_TIER_LARGE == 2 && HAKMEM_TIER_BIG == 3, "tiers keep their numbers");

/* What lies behind a structure of the caller must stay as it is. */
static struct {
    struct hakmem_stats stats;
    unsigned char guard[GUARD_BYTES];
} all;

static struct {
    struct hakmem_usage usage;
    unsigned char guard[GUARD_BYTES];
} one;

static int failures;

static void check(int holds, const char *what)
{
    if (!holds)
        printf("failed: %s\n", what);
    failures += !holds;
}

static int is_untouched(const unsigned char *guard)
{
    for (int i = 0; i < GUARD_BYTES; i++)
        if (guard[i] != UNTOUCHED)
            return 0;
    return 1;
}

/* An old program asks for each tier that it knows by its name, and for all that there are. */
static void check_tiers(void)
{
    static const char *const names[] = {"tiny", "mid", "large", "big"};
    unsigned long long live_blocks = 0, live_bytes = 0;
    for (unsigned tier = 0; tier < hakmem_tier_count(); tier++) {
        memset(&one, UNTOUCHED, sizeof one);
        size_t known = hakmem_get_tier(tier, &one.usage, sizeof one.usage);
        check(is_untouched(one.guard), "a tier is written behind its end");
        check(known > 0 && known <= sizeof one.usage, "bytes known of a tier");
        check(hakmem_tier_name(tier) != NULL, "each tier has a name");
        check(one.usage.live_blocks >= 1, "the blocks of each tier are counted");
        if (tier <= HAKMEM_TIER_BIG)
            check(strcmp(hakmem_tier_name(tier), names[tier]) == 0, "tiers keep their names");
        live_blocks += one.usage.live_blocks;
        live_bytes += one.usage.live_bytes;
        printf("usage_known %zu\n", known);
    }
    check(live_blocks == all.stats.live_blocks, "the sum of the tiers, blocks");
    check(live_bytes == all.stats.live_bytes, "the sum of the tiers, bytes");
    memset(&one, UNTOUCHED, sizeof one);
    check(
        hakmem_get_tier(hakmem_tier_count() + 5, &one.usage, sizeof one.usage) == 0,
        "a tier that does not exist is refused");
    check(one.usage.live_blocks == 0 && one.usage.committed_bytes == 0, "and is empty");
    check(is_untouched(one.guard), "and no more is written");
}

static void check_classes(void)
{
    unsigned count = hakmem_class_count();
    for (unsigned index = 0; index < count; index++) {
        memset(&one, UNTOUCHED, sizeof one);
        check(hakmem_class_size(index) > 0, "each class has a size");
        check(hakmem_get_class(index, &one.usage, sizeof one.usage) > 0, "each class is known");
        check(is_untouched(one.guard), "a class is written behind its end");
    }
    check(hakmem_class_size(count) == 0, "a class that does not exist has no size");
    check(hakmem_get_class(count, &one.usage, sizeof one.usage) == 0, "and is refused");
    printf("classes %u\n", count);
}

int main(void)
{
    void *blocks[] = {malloc(10), malloc(10000), malloc(100000), malloc(5 << 20)};
    /* Standard output has its buffer before the first look. */
    printf("blocks %d\n", blocks[0] && blocks[1] && blocks[2] && blocks[3]);
    memset(&all, UNTOUCHED, sizeof all);
    size_t known = hakmem_get_stats(&all.stats, sizeof all.stats);
    check(is_untouched(all.guard), "the statistics are written behind their end");
    check(all.stats.live_blocks >= 4 && all.stats.live_bytes >= 5 << 20, "live blocks");
    check(all.stats.mapped_bytes >= 5 << 20 && all.stats.futex_calls < 1000, "other figures");
    check_tiers();
    check_classes();
    printf("stats_size %zu\nstats_known %zu\n", sizeof all.stats, known);
    printf("usage_size %zu\ntiers %u\n", sizeof one.usage, hakmem_tier_count());
#ifdef PROGRAM_OF_THE_FUTURE
    printf("future_total %llu\n", (unsigned long long)all.stats.future_total);
    memset(&one, UNTOUCHED, sizeof one);
    size_t tier_known = hakmem_get_tier(HAKMEM_TIER_FUTURE, &one.usage, sizeof one.usage);
    printf("future_tier_known %zu\n", tier_known);
    printf("future_tier_blocks %llu\n", (unsigned long long)one.usage.live_blocks);
    printf("future_usage %llu\n", (unsigned long long)one.usage.future_usage);
#endif
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
    return failures ? 1 : 0;
}
