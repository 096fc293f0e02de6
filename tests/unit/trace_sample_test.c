/* trace/sample: that a sample is a block like any other. What samples say is the matter of
 * trace_bias_test.c. */
#include "unit.h"

#include <pthread.h>

#include "api/alloc.h"
#include "api/block.h"
#include "checks/walk.h"
#include "reclaim/engine.h"
#include "report/stats.h"
#include "slab/shard.h"
#include "thread/registry.h"
#include "trace/sample.h"
#include "trace/site.h"

enum { MEAN = 512 };

static int start(void **state)
{
    (void)state;
    return sample_set_mean(MEAN) ? 0 : -1;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static struct sample *sample_at(void *block)
{
    return sample_of(block);
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

/* A thread may be cancelled between the pop and the sample: its heap's next one asks for a block of
 * any size. */
static void what_was_asked_for_long_ago_is_forgotten(void **state)
{
    (void)state;
    static const size_t sizes[] = {100, 5000, 100000, 5000000};
    sample_set_mean(1 << 30);
    for (size_t s = 0; s < ARRAY_LENGTH(sizes); s++) {
        heap_of_thread()->sample_class = 1;
        void *block = alloc_any(sizes[s], 4096, size_class_aligned(sizes[s], 4096), false);
        CHECK(block && !sample_at(block) && !heap_of_thread()->sample_class);
        release(block);
    }
    sample_set_mean(MEAN);
}

static void misuse_is_found(void **state)
{
    (void)state;
    sample_set_mean(1);
    expect_abort(free_twice, "double free");
    expect_abort(free_inside, "inside a block");
    sample_set_mean(MEAN);
}

static uint64_t sampled_bytes(void)
{
    uint64_t sum = 0;
    for (const struct site *site = site_newest(); site; site = site->next)
        sum += site->born_bytes;
    return sum;
}

static void what_is_off_costs_nothing(void **state)
{
    (void)state;
    sample_set_mean(0);
    uint64_t total = sampled_bytes();
    for (unsigned i = 0; i < 100000; i++)
        release(alloc(1000));
    assert_int_equal(sampled_bytes(), total);
    sample_set_mean(MEAN);
    for (unsigned i = 0; i < 1000; i++)
        release(alloc(1000));
    assert_true(sampled_bytes() > total);
}

/* What is kept for the next sample is free memory like any other: a purge gives it back, and there
 * is none when sampling is off. */
static void nothing_is_kept_back(void **state)
{
    enum { COUNT = 64, SIZE_MAX_TRIED = 128 * KIB };
    void *held[COUNT];
    (void)state;
    for (int off = 0; off <= 1; off++) {
        CHECK(sample_set_mean(1));
        for (size_t size = 16; size <= SIZE_MAX_TRIED; size *= 2)
            for (int i = 0; i < COUNT; i++)
                release(alloc(size));
        for (int i = 0; i < COUNT; i++)
            held[i] = alloc(1000);
        if (off)
            CHECK(sample_set_mean(0));
        for (int i = 0; i < COUNT; i++)
            release(held[i]);
        if (!off)
            (void)reclaim_everything();
        size_t slabs = 0;
        for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++)
            slabs += bin_of(slab_samples_shard, size_class)->slab_count;
        CHECK(slabs == 0);
    }
    CHECK(sample_set_mean(MEAN));
}

/* A sample that lies in a longer block than one of its class stays of its class when realloc leaves
 * it where it is; one that has a slab to itself is of another class when that becomes shorter. */
static void classes_are_kept_by_realloc(void **state)
{
    (void)state;
    sample_set_mean(1);
    for (unsigned size_class = size_class_of(MID_MAX + 1); size_class <= SIZE_COUNT; size_class++) {
        uint64_t live = live_blocks();
        size_t size = size_classes[size_class].size;
        release(alloc(size));
        char *block = alloc(size); /* of a longer class, perhaps, which has lent it */
        CHECK(sample_at(block));
        size_t usable = alloc_usable_size(block, "test");
        char *same = alloc_resize(block, usable - 8);
        CHECK(same == block && alloc_usable_size(same, "test") == usable);
        same = alloc_resize(block, usable * 2 / 3);
        CHECK(alloc_usable_size(same, "test") < usable || same == block);
        release(same);
        CHECK(live_blocks() == live);
    }
    walk_all();
    sample_set_mean(MEAN);
}

/* What is kept of a thread, such as where its stack lies, ends with it, also where the next one
 * gets its id. */
static void nothing_is_kept_of_a_thread_that_ended(void **state)
{
    (void)state;
    CHECK(sample_set_mean(1));
    release(alloc(100));
    release(alloc(100));
    const uint64_t *thread = (const uint64_t *)heap_of_thread()->sampler; /* its first field */
    CHECK(*thread == identity_self());
    CHECK(sample_set_mean(0));
    heap_forget();
    release(alloc(100));
    CHECK(*thread == 0);
    CHECK(sample_set_mean(MEAN));
}

/* ---- The log --------------------------------------------------------------------------------- */

static char folder[64] = "/tmp/hakmem-sample-XXXXXX";
static unsigned taken, taken_deferred;

static void take(struct log_snapshot *snapshot)
{
    int type;
    (void)snapshot;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    taken++;
    taken_deferred += type == PTHREAD_CANCEL_DEFERRED;
    pthread_setcanceltype(type, NULL);
}

static void say(const char *line, size_t length)
{
    CHECK(write(STDERR_FILENO, line, length) == (ssize_t)length);
}

static void resize_with_a_log(void *unused)
{
    enum { LONGEST_PAUSE_US = 200000 };
    char path[128];
    int type;
    (void)unused;
    snprintf(path, sizeof path, "%s/log", folder);
    const struct log_settings settings = {
        .path = path, .limit_bytes = 2 * MIB, .sample_mean_bytes = 1, .take = take, .say = say};
    log_start(&settings);
    CHECK(log_is_on() && sample_set_mean(1));
    char *block = alloc(300000);
    block = sample_at(block) ? block : alloc(300000);
    CHECK(sample_at(block) && sample_at(block)->log);
    usleep(LONGEST_PAUSE_US); /* a snapshot is due */
    taken = taken_deferred = 0;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    char *resized = alloc_resize(block, 299000);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    CHECK(resized == block && type == PTHREAD_CANCEL_ASYNCHRONOUS);
    CHECK(taken && taken_deferred == taken);
    CHECK(unlink(path) == 0);
}

/* Who is cancelled asynchronously must not end while the log waits for it. */
static void a_resized_block_is_told_to_the_end(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    unit_in_child(resize_with_a_log, NULL);
    assert_int_equal(rmdir(folder), 0);
}

/* Recursion, and names of scopes: what is beyond the bound counts for the innermost frames. For all
 * tests that follow, there is no room either. */
static void sites_have_a_bound(void **state)
{
    (void)state;
    enum { FRAMES = 9, INNERMOST = 5, MANY = 40000 };
    uintptr_t frames[FRAMES] = {11, 12, 13, 14, 15, 16, 17, 18, 0};
    const struct site *site = NULL;
    for (frames[FRAMES - 1] = 1; frames[FRAMES - 1] < MANY; frames[FRAMES - 1]++)
        site = site_find(frames, FRAMES, 0, "");
    assert_non_null(site);
    assert_int_equal(site->frames, INNERMOST);
    assert_ptr_equal(site_find(frames, INNERMOST, 0, ""), site);
    assert_ptr_equal(site_find(frames, INNERMOST, 0, SCOPES ? "request 1" : ""), site);
    frames[FRAMES - 1] = 1;
    assert_int_equal(site_find(frames, FRAMES, 0, "")->frames, FRAMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_blocks_like_others),
        cmocka_unit_test(big_blocks_keep_what_they_are),
        cmocka_unit_test(alignment_is_kept),
        cmocka_unit_test(what_was_asked_for_long_ago_is_forgotten),
        cmocka_unit_test(misuse_is_found),
        cmocka_unit_test(what_is_off_costs_nothing),
        cmocka_unit_test(nothing_is_kept_back),
        cmocka_unit_test(classes_are_kept_by_realloc),
        cmocka_unit_test(nothing_is_kept_of_a_thread_that_ended),
        cmocka_unit_test(a_resized_block_is_told_to_the_end),
        cmocka_unit_test(sites_have_a_bound),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
