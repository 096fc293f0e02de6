/* span/span: sizes, alignments, zeroing, resizing in place and the messages on misuse
 * (behaviours 11, 13, 16, 24). */
#include "unit.h"

#include "base/policy.h"
#include "map/size_class.h"
#include "span/page_heap.h"
#include "span/span.h"

enum { SPANS = 60, STEPS = 20000 };

struct held {
    char *block;
    size_t size;
    char fill;
};

static struct held held[SPANS];

static struct superslab *superslab_of(const void *block)
{
    struct region *region = page_map_lookup(block);
    CHECK(region && region->kind == REGION_SUPERSLAB);
    return (struct superslab *)region;
}

static size_t size_of(const void *block)
{
    return span_size(superslab_of(block), block, "test");
}

static void release_block(void *block)
{
    span_free(superslab_of(block), block, "free");
}

static void every_size_and_alignment(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,   PAGE_SIZE, MID_MAX + 1,         100000,  MIB - 1,
                                   MIB, MIB + 1,   2 * MIB - PAGE_SIZE, SPAN_MAX};
    for (size_t alignment = 1; alignment <= SPAN_ALIGNMENT_MAX; alignment *= 2) {
        for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
            char *block = span_alloc(sizes[i], alignment, false);
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % size_max(alignment, PAGE_SIZE), 0);
            assert_int_equal(size_of(block), round_up(sizes[i], PAGE_SIZE));
            memset(block, 1, size_of(block));
            page_heap_check();
            release_block(block);
        }
    }
    page_heap_check();
    assert_int_equal(page_heap_stats().used_pages, 0);
}

static void check_contents(const struct held *slot)
{
    CHECK(unit_all_bytes(slot->block, slot->size, (unsigned char)slot->fill));
}

static void take(struct held *slot, uint64_t *random)
{
    bool zero = unit_below(random, 2);
    size_t alignment = unit_below(random, 4) ? 16 : (size_t)1 << unit_below(random, 21);
    slot->size = MID_MAX + 1 + unit_random(random) % (unit_below(random, 8) ? 100000 : MIB);
    slot->block = span_alloc(slot->size, alignment, zero);
    CHECK(slot->block && (uintptr_t)slot->block % alignment == 0);
    CHECK(size_of(slot->block) == round_up(slot->size, PAGE_SIZE));
    if (zero)
        CHECK(unit_all_bytes(slot->block, size_of(slot->block), 0));
    slot->fill = (char)(1 + unit_below(random, 100));
    memset(slot->block, slot->fill, slot->size);
}

static void resize(struct held *slot, uint64_t *random)
{
    size_t before = size_of(slot->block);
    size_t size = MID_MAX + 1 + unit_random(random) % (2 * slot->size);
    size = size_min(size, SPAN_MAX);
    bool resized = span_resize(superslab_of(slot->block), slot->block, size);
    if (round_up(size, PAGE_SIZE) <= before)
        CHECK(resized);
    CHECK(size_of(slot->block) == (resized ? round_up(size, PAGE_SIZE) : before));
    if (!resized)
        return;
    size_t kept = size_min(slot->size, size);
    CHECK(unit_all_bytes(slot->block, kept, (unsigned char)slot->fill));
    memset(slot->block, slot->fill, size);
    slot->size = size;
}

static void check_stats(struct span_stats start, uint64_t allocated, uint64_t freed)
{
    struct span_stats now = span_stats();
    uint64_t bytes = 0;
    for (int i = 0; i < SPANS; i++)
        if (held[i].block)
            bytes += size_of(held[i].block);
    CHECK(now.allocated - start.allocated == allocated);
    CHECK(now.freed - start.freed == freed);
    CHECK(now.live_bytes == bytes);
    CHECK(page_heap_stats().used_pages * PAGE_SIZE == bytes);
}

static void random_steps_keep_contents(void **state)
{
    (void)state;
    uint64_t random = 31, allocated = 0, freed = 0;
    struct span_stats start = span_stats();
    for (int step = 0; step < STEPS; step++) {
        struct held *slot = &held[unit_below(&random, SPANS)];
        if (!slot->block) {
            take(slot, &random);
            allocated++;
        } else if (unit_below(&random, 2)) {
            resize(slot, &random);
        } else {
            check_contents(slot);
            release_block(slot->block);
            slot->block = NULL;
            freed++;
        }
        if (step % 8 == 0)
            page_heap_check();
        if (step % 64 == 0)
            page_heap_purge(unit_below(&random, 8 * MIB));
        check_stats(start, allocated, freed);
    }
    for (int i = 0; i < SPANS; i++) {
        if (!held[i].block)
            continue;
        check_contents(&held[i]);
        release_block(held[i].block);
        held[i].block = NULL;
        freed++;
    }
    check_stats(start, allocated, freed);
}

static void sizes_of_other_tiers_are_not_resized_to(void **state)
{
    (void)state;
    char *block = span_alloc(100000, 16, false);
    size_t before = size_of(block);
    assert_false(span_resize(superslab_of(block), block, 0));
    assert_false(span_resize(superslab_of(block), block, MID_MAX));
    assert_false(span_resize(superslab_of(block), block, SPAN_MAX + 1));
    assert_false(span_resize(superslab_of(block), block, SIZE_MAX));
    assert_int_equal(size_of(block), before);
    release_block(block);
}

static void free_shrunk_tail_serves_others(void **state)
{
    (void)state;
    char *block = span_alloc(MIB, MIB, false);
    assert_true(span_resize(superslab_of(block), block, MIB / 2));
    char *second = span_alloc(MIB / 2, 16, false);
    assert_ptr_equal(second, block + MIB / 2);
    assert_false(span_resize(superslab_of(block), block, MIB / 2 + 1));
    release_block(second);
    assert_true(span_resize(superslab_of(block), block, MIB));
    release_block(block);
}

static void free_twice(void *block)
{
    release_block(block);
    release_block(block);
}

static void free_at_3000(void *block)
{
    release_block((char *)block + 3008);
}

static void free_at_5001(void *block)
{
    release_block((char *)block + 5001);
}

static void free_behind(void *block)
{
    release_block((char *)block + size_of(block) + 3);
}

static void misuse_is_named(void **state)
{
    (void)state;
    char line[200];
    char *block = span_alloc(50000, 16, false);
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", (void *)block);
    unit_expect_abort(free_twice, block, line);
    snprintf(
        line, sizeof line,
        "hakmem: free(): invalid pointer %p: inside a block of 53248 bytes at %p",
        (void *)(block + 3008), (void *)block);
    unit_expect_abort(free_at_3000, block, line);
    snprintf(
        line, sizeof line,
        "hakmem: free(): invalid pointer %p: inside a block of 53248 bytes at %p",
        (void *)(block + 5001), (void *)block);
    unit_expect_abort(free_at_5001, block, line);
    snprintf(
        line, sizeof line, "hakmem: free(): invalid pointer %p: misaligned",
        (void *)(block + 53248 + 3));
    unit_expect_abort(free_behind, block, line);
    release_block(block);
}

static int start_heap(void **state)
{
    (void)state;
    return page_heap_init() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_and_alignment),
        cmocka_unit_test(sizes_of_other_tiers_are_not_resized_to),
        cmocka_unit_test(free_shrunk_tail_serves_others),
        cmocka_unit_test(random_steps_keep_contents),
        cmocka_unit_test(misuse_is_named),
    };
    return cmocka_run_group_tests(tests, start_heap, NULL);
}
