/* The states of long blocks (span/superslab.h), by the calls that change them: of every class, at
 * every place where a block could start, through reuse, purge, changes of size and alignment. */
#include "unit.h"

#include <pthread.h>

#include "api/alloc.h"
#include "base/pressure.h"
#include "checks/checks.h"
#include "reclaim/engine.h"
#include "slab/bin.h"
#include "slab/shard.h"
#include "slab/transfer.h"

/* The class of the live long block that starts there; CLASS_NONE: none does. */
static size_t live_class(const void *pointer)
{
    const uint8_t *state = superslab_find_state(pointer);
    return state ? superslab_live_class(state, pointer) : CLASS_NONE;
}

static unsigned state_of(const void *block)
{
    return *superslab_find_state(block);
}

/* Nothing is cached by this thread or kept for it. */
static void give_all_back(void)
{
    struct heap *heap = heap_enter();
    heap_flush(heap, SIZE_MAX);
    heap_leave(heap);
    reclaim_everything();
}

/* Pointers into the block, all that a block could start at and some that none can. */
static void check_inside(char *block, size_t size)
{
    static const size_t beside[] = {1, 8, 16, 64, 256, 511};
    for (size_t offset = 0; offset < size; offset += KIB / 2) {
        CHECK(offset == 0 || !live_class(block + offset));
        CHECK(offset == 0 || !magazine_push_long(thread_heap, (void **)(void *)(block + offset)));
        for (size_t i = 0; i < ARRAY_LENGTH(beside); i++) {
            CHECK(!live_class(block + offset + beside[i]));
            CHECK(!magazine_push_long(thread_heap, (void **)(void *)(block + offset + beside[i])));
        }
    }
}

static void only_the_start_of_a_live_block_is_one(void **state)
{
    (void)state;
    enum { COUNT = 9 };
    for (unsigned class = LONG_CLASS_FIRST; class <= SIZE_COUNT; class ++) {
        size_t size = size_classes[class].size;
        char *blocks[COUNT];
        for (int i = 0; i < COUNT; i++) {
            blocks[i] = alloc(size);
            CHECK(blocks[i] && size_classes[live_class(blocks[i])].size >= size);
        }
        for (int i = 0; i < COUNT; i++)
            check_inside(blocks[i], alloc_usable_size(blocks[i], "test"));
        for (int i = 0; i < COUNT; i++) {
            release(blocks[i]);
            CHECK(!live_class(blocks[i]));
            /* Others may have gone with their slabs. */
            bool cached = heap_caches(heap_of_thread(), class, blocks[i]);
            CHECK(!cached || state_of(blocks[i]) == BLOCK_FREED);
        }
        heap_check(heap_of_thread());
        bin_check_all();
    }
}

static void nothing_is_left_of_a_slab_that_ended(void **state)
{
    (void)state;
    give_all_back();
    unsigned superslabs = 0;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL; superslabs++) {
        if (region->kind != REGION_SUPERSLAB)
            continue;
        const struct superslab *superslab = (const struct superslab *)region;
        assert_true(
            unit_all_bytes(superslab->block_state, sizeof superslab->block_state, BLOCK_UNUSED));
    }
    assert_int_not_equal(superslabs, 0);
}

/* What was handed out once is never taken for zero, but by what ended its slab. */
static void calloc_knows_what_is_zero(void **state)
{
    (void)state;
    for (unsigned class = LONG_CLASS_FIRST; class <= SIZE_COUNT; class ++) {
        size_t size = size_classes[class].size;
        for (int round = 0; round < 6; round++) {
            char *block = alloc_zeroed(1, size), *other = alloc_zeroed(size, 1);
            CHECK(unit_all_bytes(block, size, 0) && unit_all_bytes(other, size, 0));
            memset(block, 0xff, size);
            other[size / 2] = 1;
            release(block);
            if (round == 1 || round == 3)
                give_all_back();
            release(round % 2 ? other : memset(other, 0xff, size));
            if (round == 2 || round == 3)
                give_all_back();
        }
    }
}

/* A block that was touched only by whoever had it before the slab ended. */
static void calloc_of_units_that_others_had(void **state)
{
    (void)state;
    for (unsigned class = LONG_CLASS_FIRST; class <= SIZE_COUNT; class += 5) {
        size_t size = size_classes[class].size;
        give_all_back();
        char *tiny[3000];
        for (size_t i = 0; i < ARRAY_LENGTH(tiny); i++)
            memset(tiny[i] = alloc(1024), 0xff, 1024);
        for (size_t i = 0; i < ARRAY_LENGTH(tiny); i++)
            release(tiny[i]);
        struct heap *heap = heap_enter();
        heap_flush(heap, SIZE_MAX);
        transfer_drain(SIZE_MAX);
        heap_leave(heap);
        char *block = alloc_zeroed(1, size);
        CHECK(unit_all_bytes(block, size, 0));
        release(block);
    }
}

static void a_single_block_that_changes_its_length_is_live(void **state)
{
    (void)state;
    give_all_back();
    char *block = alloc(2 * UNIT_SIZE);
    memset(block, 1, 2 * UNIT_SIZE);
    assert_ptr_equal(alloc_resize(block, 6 * UNIT_SIZE), block);
    assert_int_equal(live_class(block), size_class_of(6 * UNIT_SIZE));
    check_inside(block, 6 * UNIT_SIZE);
    memset(block, 1, 6 * UNIT_SIZE);
    assert_ptr_equal(alloc_resize(block, 3 * UNIT_SIZE), block);
    assert_int_equal(live_class(block), size_class_of(3 * UNIT_SIZE));
    char *behind = alloc_zeroed(1, 3 * UNIT_SIZE);
    assert_true(unit_all_bytes(behind, 3 * UNIT_SIZE, 0));
    release(block);
    assert_int_equal(state_of(block), BLOCK_FREED);
    release(behind);
    bin_check_all();
}

/* Of mid blocks realloc leaves those alone that fit. */
static void a_block_that_stays_keeps_its_class(void **state)
{
    (void)state;
    char *block = alloc(20000);
    size_t class = live_class(block), size = size_classes[class].size;
    assert_ptr_equal(alloc_resize(block, size), block);
    assert_ptr_equal(alloc_resize(block, size - size / 6), block);
    assert_int_equal(live_class(block), class);
    char *moved = alloc_resize(block, 2 * size);
    assert_ptr_not_equal(moved, block);
    assert_int_equal(state_of(block), BLOCK_FREED);
    assert_true(live_class(moved) > class);
    release(moved);
}

static void aligned_blocks_are_live(void **state)
{
    (void)state;
    static const size_t sizes[] = {5000, 9000, 33000, 65536, 100000, 131073, 700000};
    for (size_t alignment = 32; alignment <= LARGE_MAX; alignment *= 2) {
        for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
            char *block = alloc_aligned(sizes[i], alignment);
            CHECK(block && (uintptr_t)block % alignment == 0);
            size_t usable = alloc_usable_size(block, "test"), class = live_class(block);
            CHECK(usable >= sizes[i]);
            check_inside(block, usable);
            /* A page is left that shows advice for all others. */
            bool advisable =
                alignment >= PAGE_SIZE && alignment <= UNIT_SIZE && sizes[i] > 112 * KIB;
            CHECK(advisable ? usable > sizes[i] + PAGE_SIZE : size_classes[class].size == usable);
            CHECK(!advisable || (!class && state_of(block) == BLOCK_ADVISABLE));
            release(block);
            CHECK(!live_class(block) && state_of(block) != BLOCK_ADVISABLE);
        }
    }
    bin_check_all();
}

/* A short size that a long block serves. */
static void borrowed_blocks_are_live(void **state)
{
    (void)state;
    release(alloc(4608));
    for (size_t size = 3329; size <= SHORT_MAX; size += 256) {
        char *block = alloc(size), *zeroed = alloc_zeroed(1, size);
        size_t usable = alloc_usable_size(block, "test");
        CHECK(usable <= SHORT_MAX || live_class(block));
        CHECK(unit_all_bytes(zeroed, size, 0));
        release(block);
        release(zeroed);
    }
}

static pthread_barrier_t limited;

static void *free_when_limited(void *block)
{
    pthread_barrier_wait(&limited);
    release(block);
    return NULL;
}

/* The thread gets no heap: its block goes to the slab, where others of it are in use. */
static void free_in_thread_without_heap(void *unused)
{
    (void)unused;
    const struct rlimit none = {0, 0};
    pthread_t thread;
    char *block = alloc(20480), *other = alloc(20480);
    struct bin *bin = bin_of(slab_lookup(block)->shard, (unsigned)live_class(block));
    uint64_t direct = bin->direct_blocks;
    pthread_barrier_init(&limited, NULL, 2);
    CHECK(pthread_create(&thread, NULL, free_when_limited, block) == 0);
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    pthread_barrier_wait(&limited);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(bin->direct_blocks == direct + 1 && state_of(block) == BLOCK_FREED);
    bin_check_all();
    CHECK(alloc(20480) == block && live_class(block));
    release(block);
    release(other);
}

static void a_thread_without_heap_frees_long_blocks(void **state)
{
    (void)state;
    if (HAKMEM_SANITIZE_ADDRESS || HAKMEM_SANITIZE_THREAD)
        skip(); /* its runtime maps memory itself */
    give_all_back();
    unit_in_child(free_in_thread_without_heap, NULL);
}

static void free_twice(void *block)
{
    release(block);
    release(block);
}

static void free_inside(void *block)
{
    release((char *)block + 4096);
}

static void free_beside(void *block)
{
    release((char *)block + 8);
}

static void free_unused(void *block)
{
    release((char *)block + 10240);
}

static void resize_freed(void *block)
{
    release(block);
    alloc_resize(block, 5000);
}

static void misuse_is_seen_at_once(void **state)
{
    (void)state;
    char line[200], *block;
    give_all_back();
    block = alloc(10240);
    const struct slab *slab = slab_lookup(block);
    assert_ptr_equal(block, slab->base);
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", (void *)block);
    unit_expect_abort(free_twice, block, line);
    snprintf(line, sizeof line, "hakmem: realloc(): double free of %p", (void *)block);
    unit_expect_abort(resize_freed, block, line);
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", (void *)(block + 10240));
    unit_expect_abort(free_unused, block, line);
    snprintf(
        line, sizeof line, "hakmem: free(): invalid pointer %p: misaligned", (void *)(block + 8));
    unit_expect_abort(free_beside, block, line);
    snprintf(
        line, sizeof line,
        "hakmem: free(): invalid pointer %p: inside a block of 10240 bytes at %p",
        (void *)(block + 4096), (void *)block);
    unit_expect_abort(free_inside, block, line);
    release(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_start_of_a_live_block_is_one),
        cmocka_unit_test(nothing_is_left_of_a_slab_that_ended),
        cmocka_unit_test(calloc_knows_what_is_zero),
        cmocka_unit_test(calloc_of_units_that_others_had),
        cmocka_unit_test(a_single_block_that_changes_its_length_is_live),
        cmocka_unit_test(a_block_that_stays_keeps_its_class),
        cmocka_unit_test(aligned_blocks_are_live),
        cmocka_unit_test(borrowed_blocks_are_live),
        cmocka_unit_test(a_thread_without_heap_frees_long_blocks),
        cmocka_unit_test(misuse_is_seen_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
