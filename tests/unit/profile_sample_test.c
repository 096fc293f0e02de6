/* profile/sample: what samples say against what was allocated, where the order of allocations would
 * bias who does not decide at each of them; and that a sample is a block like any other. */
#include "unit.h"

#include <math.h>
#include <pthread.h>

#include "api/alloc.h"
#include "api/block.h"
#include "observe/stats.h"
#include "observe/walk.h"
#include "profile/sample.h"
#include "slab/shard.h"
#include "thread/registry.h"

enum { MEAN = 512, BLOCKS = 200000, CLOSE = 4096 };

static void *held[BLOCKS];

/* ---- Sites: functions with an address each --------------------------------------------------- */

/* An empty assembly keeps the call from being the last thing, which would make it a jump. */
#define SITE(name, expression)                                                                     \
    static __attribute__((noinline)) void *name(size_t size)                                       \
    {                                                                                              \
        void *block = expression;                                                                  \
        __asm__ volatile("" : "+r"(block));                                                        \
        CHECK(block);                                                                              \
        return block;                                                                              \
    }

SITE(site_a, alloc(size))
SITE(site_b, alloc(size + 0))
SITE(site_zeroed, alloc_zeroed(1, size))
SITE(site_aligned, alloc_aligned(size, 64))
SITE(site_resized, alloc_resize(NULL, size))

typedef void *site_function(size_t size);

struct estimate {
    double born, born_blocks, dead, remote, samples;
};

/* Whether the function is in the stack, near its innermost end, where a sanitizer keeps functions
 * of the library. */
static bool is_of(const struct site *site, site_function *function)
{
    for (unsigned i = 0; i < site->frames && i < 8; i++)
        if (site->frame[i] - (uintptr_t)function < CLOSE) {
            /* The nearest of all functions below it. */
            site_function *all[] = {site_a, site_b, site_zeroed, site_aligned, site_resized};
            for (size_t other = 0; other < ARRAY_LENGTH(all); other++)
                if (all[other] > function && site->frame[i] >= (uintptr_t)all[other])
                    return false;
            return true;
        }
    return false;
}

static struct estimate estimate_of(site_function *function)
{
    struct estimate sum = {0};
    for (const struct site *site = site_newest(); site; site = site->next) {
        if (!is_of(site, function))
            continue;
        sum.samples += (double)site->born_samples;
        sum.born += (double)site->born_bytes;
        sum.born_blocks += (double)site->born_parts / SITE_PARTS;
        sum.dead += (double)site->dead_bytes;
        sum.remote += (double)site->remote_parts / SITE_PARTS;
    }
    return sum;
}

/* What was allocated by the function since `before` is what it says, within five standard
 * deviations. */
static void check_born(
    site_function *function, struct estimate before, double blocks, size_t size, const char *name)
{
    struct estimate now = estimate_of(function);
    double chance = due_chance(size_classes[size_class_of(size)].size);
    double bytes = now.born - before.born, exact = blocks * (double)size;
    double deviation = (double)size * sqrt(blocks * (1 - chance) / chance);
    print_message(
        "%s: %.0f bytes, %+.2f%%, %+.2f deviations\n", name, exact, 100 * (bytes / exact - 1),
        (bytes - exact) / deviation);
    assert_true(fabs(bytes - exact) <= 5 * deviation);
    assert_true(
        fabs(now.born_blocks - before.born_blocks - blocks) <= 5 * deviation / (double)size);
}

static int start(void **state)
{
    (void)state;
    return sample_set_mean(MEAN) ? 0 : -1;
}

/* ---- Bias ------------------------------------------------------------------------------------ */

/* Of two blocks at a time that come and go, no call ever misses. */
static void pairs_beside_a_leak(void **state)
{
    (void)state;
    struct estimate a = estimate_of(site_a), b = estimate_of(site_b);
    unsigned leaked = 0;
    for (unsigned i = 0; i < 8 * BLOCKS; i++) {
        void **block = site_a(64);
        block[0] = NULL;
        release(block);
        if (i % 8 == 0)
            *(void **)(held[leaked++] = site_b(64)) = NULL;
    }
    check_born(site_a, a, 8 * BLOCKS, 64, "pairs");
    check_born(site_b, b, BLOCKS, 64, "leak");
    struct estimate now = estimate_of(site_b), pairs = estimate_of(site_a);
    assert_true(now.dead == b.dead);
    assert_true(pairs.born - pairs.dead == a.born - a.dead);
    while (leaked)
        release(held[--leaked]);
    now = estimate_of(site_b);
    assert_true(now.born == now.dead);
}

static void two_sites_in_turn(void **state)
{
    (void)state;
    struct estimate a = estimate_of(site_a), b = estimate_of(site_b);
    for (unsigned i = 0; i < 4 * BLOCKS; i++) {
        void **one = site_a(200), **two = site_b(200);
        one[0] = two[0] = NULL;
        release(i % 2 ? one : two);
        release(i % 2 ? two : one);
    }
    check_born(site_a, a, 4 * BLOCKS, 200, "first");
    check_born(site_b, b, 4 * BLOCKS, 200, "second");
}

static void phases(void **state)
{
    (void)state;
    for (unsigned phase = 0; phase < 6; phase++) {
        site_function *function = phase % 2 ? site_zeroed : site_resized;
        size_t size = 40 + 100 * phase;
        struct estimate before = estimate_of(function);
        for (unsigned i = 0; i < BLOCKS; i++)
            held[i] = function(size);
        check_born(function, before, BLOCKS, size, "phase");
        for (unsigned i = 0; i < BLOCKS; i++)
            release(held[i]);
        struct estimate now = estimate_of(function);
        assert_true(now.born == now.dead);
    }
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
    struct estimate before = estimate_of(site_aligned);
    pthread_t thread;
    for (unsigned i = 0; i < BLOCKS; i++)
        held[i] = site_aligned(128);
    pthread_create(&thread, NULL, free_all, NULL);
    pthread_join(thread, NULL);
    check_born(site_aligned, before, BLOCKS, 128, "producer");
    struct estimate now = estimate_of(site_aligned);
    assert_true(now.born == now.dead);
    assert_true(now.remote - before.remote == now.born_blocks - before.born_blocks);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static struct sample *sample_at(void *block)
{
    struct block_info info = block_find(block);
    if (info.kind == BLOCK_BIG)
        return info.big->sample;
    return slab_is_sampled(info.slab) ? sample_of(info.slab, block, "test") : NULL;
}

static uint64_t live_blocks(void)
{
    struct snapshot now;
    stats_collect(&now);
    return now.total.live_blocks;
}

static void samples_are_blocks_like_others(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,    1,     100,    1024,   3000,   4096,
                                   5000, 20000, 100000, 300000, 2000000};
    uint64_t live = live_blocks();
    sample_set_mean(1);
    for (size_t s = 0; s < ARRAY_LENGTH(sizes); s++) {
        size_t size = sizes[s], usable = 0;
        for (unsigned i = 0; i < 50; i++) {
            char *block = i % 2 ? alloc(size) : alloc_zeroed(1, size);
            CHECK(block && (uintptr_t)block % MIN_ALIGNMENT == 0);
            CHECK(i % 2 || !size || (block[0] == 0 && block[size - 1] == 0));
            CHECK(i == 0 || sample_at(block));
            usable = alloc_usable_size(block, "test");
            CHECK(usable >= size && usable <= size_classes[size_class_of(size)].size * 2 + 64);
            memset(block, 0xee, usable);
            CHECK(live_blocks() == live + 1);
            block = alloc_resize(block, usable + size / 2 + 1);
            CHECK(!size || (block[0] == (char)0xee && block[size - 1] == (char)0xee));
            block = alloc_resize(block, size / 3 + 1);
            CHECK(!size || block[0] == (char)0xee);
            CHECK(live_blocks() == live + 1);
            release(block);
            CHECK(live_blocks() == live);
        }
        walk_all();
    }
    sample_set_mean(MEAN);
}

static void big_blocks_keep_what_they_are(void **state)
{
    (void)state;
    uint64_t live = live_blocks();
    for (unsigned i = 0; i < 20; i++) {
        char *block = alloc((3 + i % 3) * MIB);
        CHECK(sample_at(block));
        CHECK(sample_at(block)->requested_bytes == (3 + i % 3) * MIB);
        block = alloc_resize(block, 9 * MIB);
        CHECK(sample_at(block) && sample_at(block)->requested_bytes == 9 * MIB);
        release(block);
    }
    assert_int_equal(live_blocks(), live);
}

static void alignment_is_kept(void **state)
{
    (void)state;
    sample_set_mean(1);
    for (size_t alignment = 16; alignment <= 4 * MIB; alignment *= 2) {
        for (size_t size = 1; size < 600000; size = size * 5 + 3) {
            void *block = alloc_aligned(size, alignment);
            CHECK(block && (uintptr_t)block % alignment == 0);
            memset(block, 1, size);
            release(block);
        }
    }
    sample_set_mean(MEAN);
    walk_all();
}

static void free_twice(void *unused)
{
    (void)unused;
    void *block = alloc(100);
    block = sample_at(block) ? block : alloc(100);
    release(block);
    release(block);
}

static void free_inside(void *unused)
{
    (void)unused;
    char *block = alloc(6000);
    block = sample_at(block) ? block : alloc(6000);
    release(block + 512);
}

static void expect_abort(void (*function)(void *), const char *defect)
{
    char output[1024];
    int status = unit_run_child(function, NULL, output, sizeof output);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(output, defect));
}

static void misuse_is_found(void **state)
{
    (void)state;
    sample_set_mean(1);
    expect_abort(free_twice, "double free");
    expect_abort(free_inside, "inside a block");
    sample_set_mean(MEAN);
}

static void what_is_off_costs_nothing(void **state)
{
    (void)state;
    sample_set_mean(0);
    uint64_t total = sample_total_bytes();
    for (unsigned i = 0; i < 100000; i++)
        release(site_a(1000));
    assert_int_equal(sample_total_bytes(), total);
    sample_set_mean(MEAN);
    for (unsigned i = 0; i < 1000; i++)
        release(site_a(1000));
    assert_true(sample_total_bytes() > total);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_beside_a_leak),
        cmocka_unit_test(two_sites_in_turn),
        cmocka_unit_test(phases),
        cmocka_unit_test(producer_and_consumer),
        cmocka_unit_test(samples_are_blocks_like_others),
        cmocka_unit_test(big_blocks_keep_what_they_are),
        cmocka_unit_test(alignment_is_kept),
        cmocka_unit_test(misuse_is_found),
        cmocka_unit_test(what_is_off_costs_nothing),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
