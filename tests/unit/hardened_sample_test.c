/* trace/sample in the hardened preset: a sample is a block as others of the preset, between
 * closed pages whatever its size, and samples stand for all that is allocated. */
#include "hardened_unit.h"

#include <math.h>
#include <pthread.h>

#include "api/alloc.h"
#include "api/block.h"
#include "checks/walk.h"
#include "os/os.h"
#include "trace/address.h"
#include "trace/sample.h"

/* With that each block is one. */
enum { ALL = 1 };

static int start(void **state)
{
    (void)state;
    return sample_set_mean(ALL) ? 0 : -1;
}

static struct sample *sample_at(void *block)
{
    struct block_info info = block_find(block);
    if (info.kind == BLOCK_BIG)
        return info.big->sample;
    return info.kind == BLOCK_SLAB ? word_sample(info.slab) : NULL;
}

static void samples_are_blocks_of_the_preset(void **state)
{
    enum { ROUNDS = 20 };
    static const size_t sizes[] = {1,     100,   1016,   1024,    5000,   32760,
                                   32768, 50000, 300000, 2000000, 3 * MIB};
    uint64_t live = live_blocks();
    (void)state;
    for (size_t s = 0; s < ARRAY_LENGTH(sizes); s++) {
        size_t size = sizes[s];
        for (unsigned i = 0; i < ROUNDS; i++) {
            char *block = take(size);
            CHECK(sample_at(block) && sample_at(block)->requested_bytes == size);
            CHECK(address_sample(block) == sample_at(block));
            CHECK((uintptr_t)block % MIN_ALIGNMENT == 0 && unit_all_bytes(block, size, 0));
            memset(block, 0x41, size);
            CHECK(alloc_usable_size(block, "test") == size && live_blocks() == live + 1);
            if (i == 0)
                unit_expect_fault((char *)round_up((uintptr_t)block + size, os_page_size()));
            give(block);
            CHECK(live_blocks() == live);
        }
        walk_all();
    }
}

static void alignment_is_kept(void **state)
{
    uint64_t live = live_blocks();
    (void)state;
    for (size_t alignment = 16; alignment <= 4 * MIB; alignment *= 2)
        for (size_t size = 1; size < 600000; size = size * 5 + 3) {
            char *block = hardened_alloc(size, alignment, FORM_NEW);
            CHECK(block && (uintptr_t)block % alignment == 0);
            CHECK(sample_at(block) || size < 64);
            memset(block, 1, size);
            hardened_free(block, FORM_NEW | FORM_ALIGNED);
        }
    assert_int_equal(live_blocks(), live);
}

/* One that realloc leaves where it is stays one. */
static void realloc_goes_by_what_they_stand_for(void **state)
{
    enum { STEPS = 2000 };
    uint64_t random = 1, live = live_blocks();
    unsigned stayed = 0;
    (void)state;
    char *block = take(100);
    struct sample *sample = sample_at(block);
    assert_ptr_equal(alloc_resize(block, 103), block);
    assert_ptr_equal(sample_at(block), sample);
    assert_int_equal(sample->requested_bytes, 103);
    size_t size = 103, before;
    memset(block, 0x55, size);
    for (unsigned i = 0; i < STEPS; i++) {
        before = size;
        size = 1 + unit_below(&random, i % 8 ? (unsigned)(size + size / 4 + 1) : 100000);
        char *resized = alloc_resize(block, size);
        CHECK(resized && sample_at(resized) && sample_at(resized)->requested_bytes == size);
        CHECK(unit_all_bytes(resized, size_min(before, size), 0x55));
        if (size > before)
            CHECK(unit_all_bytes(resized + before, size - before, 0));
        stayed += resized == block;
        block = resized;
        memset(block, 0x55, size);
        CHECK(live_blocks() == live + 1);
    }
    assert_true(stayed > STEPS / 10);
    give(block);
    assert_int_equal(live_blocks(), live);
}

static void free_twice(void *unused)
{
    void *block = take(100);
    CHECK(sample_at(block));
    give(block);
    give(block);
    (void)unused;
}

static void write_at(void *offset)
{
    char *block = take(100);
    CHECK(sample_at(block));
    block[*(ptrdiff_t *)offset] = 1;
    give(block);
}

static void expect_abort(void (*function)(void *), void *argument, const char *defect)
{
    char output[4096];
    int status = unit_run_child(function, argument, output, sizeof output);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(output, defect));
}

static void misuse_is_found(void **state)
{
    ptrdiff_t offsets[] = {100, -1};
    (void)state;
    if (HAKMEM_SANITIZE_ADDRESS)
        skip(); /* which finds it first */
    expect_abort(free_twice, NULL, "hakmem: free(): double free of 0x");
    for (size_t i = 0; i < ARRAY_LENGTH(offsets); i++)
        expect_abort(write_at, &offsets[i], "hakmem: free(): write beyond the end of 0x");
}

struct sums {
    uint64_t born, dead, remote;
};

static struct sums all_sites(void)
{
    struct sums sums = {0};
    for (const struct site *site = site_newest(); site; site = site->next) {
        sums.born += site->born_bytes;
        sums.dead += site->dead_bytes;
        sums.remote += site->remote_parts;
    }
    return sums;
}

enum { SHAPES = 4, MANY = 20000 };

static void *blocks[MANY];

static void *free_all(void *unused)
{
    for (unsigned i = 0; i < MANY; i++)
        give(blocks[i]);
    return unused;
}

static void samples_stand_for_all(void **state)
{
    static const size_t mean = 4096, sizes[SHAPES] = {48, 700, 5000, 50000};
    struct sums before = all_sites();
    double bytes = 0;
    pthread_t thread;
    (void)state;
    assert_true(sample_set_mean(mean));
    for (unsigned i = 0; i < MANY; i++) {
        size_t size = i % 64 ? sizes[i % (SHAPES - 1)] : sizes[SHAPES - 1];
        /* Moved and grown ones, too. */
        blocks[i] = i % 5 ? take(size) : alloc_resize(take(size / 2), size);
        CHECK(blocks[i]);
        bytes += (double)size + (i % 5 ? 0 : (double)(size / 2));
    }
    CHECK(pthread_create(&thread, NULL, free_all, NULL) == 0);
    pthread_join(thread, NULL);
    struct sums after = all_sites();
    assert_true(fabs((double)(after.born - before.born) - bytes) < 5 * sqrt((double)mean * bytes));
    assert_int_equal(after.born - before.born, after.dead - before.dead);
    assert_true(after.remote > before.remote);
    assert_true(sample_set_mean(ALL));
}

static void what_is_off_samples_nothing(void **state)
{
    (void)state;
    assert_true(sample_set_mean(0));
    for (size_t size = 1; size < 5 * MIB; size *= 3) {
        void *block = take(size);
        assert_null(sample_at(block));
        give(block);
    }
    walk_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_blocks_of_the_preset),
        cmocka_unit_test(alignment_is_kept),
        cmocka_unit_test(realloc_goes_by_what_they_stand_for),
        cmocka_unit_test(misuse_is_found),
        cmocka_unit_test(samples_stand_for_all),
        cmocka_unit_test(what_is_off_samples_nothing),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
