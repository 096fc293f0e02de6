/* os/tags, and what the hardened preset does with them: on a processor that has tags of memory, who
 * touches what is not his own ends at once. */
#include "unit.h"

#include <pthread.h>

#include "api/alloc.h"
#include "base/policy.h"
#include "hardened/front.h"
#include "hardened/tags.h"
#include "report/stats.h"

enum { GRANULE = 16, SKIPPED = 77 };

/* Up to MID_MAX with its canary, since longer blocks have no tags. */
static const size_t sizes[] = {1, 8, 16, 17, 24, 100, 1000, 1016, 1017, 5000, 20000, 32760};

static void *take(size_t size)
{
    void *block = hardened_alloc(size, MIN_ALIGNMENT, FORM_MALLOC);
    CHECK(block);
    return block;
}

static void give(void *block)
{
    hardened_free(block, FORM_MALLOC);
}

/* False: the processor has none. */
static bool turn_on(void)
{
    heap_leave(heap_enter());
    void *block = take(1);
    bool has_tags = tags_of(block) != 0;
    give(block);
    return has_tags;
}

static uint64_t live_blocks(void)
{
    struct snapshot now;
    stats_collect(&now);
    return now.total.live_blocks;
}

/* ---- Which tags ------------------------------------------------------------------------------ */

static int compare_addresses(const void *a, const void *b)
{
    const char *left = tags_strip(*(char *const *)a), *right = tags_strip(*(char *const *)b);
    return (left > right) - (left < right);
}

static void neighbours_have_other_tags(void **state)
{
    enum { BLOCKS = 2000, ROUNDS = 5 };
    static char *blocks[BLOCKS];
    unsigned seen = 0, neighbours = 0;
    uint64_t random = 1;
    (void)state;
    for (size_t size = 16; size <= 1000; size = size * 5) {
        size_t length = size_classes[word_class(size, MIN_ALIGNMENT)].size;
        for (unsigned i = 0; i < BLOCKS; i++)
            blocks[i] = take(size);
        for (unsigned round = 0; round < ROUNDS; round++) {
            for (unsigned i = 0; i < BLOCKS; i++) {
                unsigned other = unit_below(&random, BLOCKS);
                give(blocks[other]);
                blocks[other] = take(size);
                seen |= 1u << tags_of(blocks[other]);
            }
            qsort(blocks, BLOCKS, sizeof *blocks, compare_addresses);
            for (unsigned i = 1; i < BLOCKS; i++) {
                char *low = tags_strip(blocks[i - 1]), *high = tags_strip(blocks[i]);
                neighbours += high - low == (ptrdiff_t)length;
                if (high - low == (ptrdiff_t)length)
                    CHECK(tags_of(blocks[i - 1]) != tags_of(blocks[i]));
            }
        }
        for (unsigned i = 0; i < BLOCKS; i++)
            give(blocks[i]);
    }
    assert_true(neighbours > BLOCKS);
    assert_int_equal(seen, 0xfffe);
}

/* Returns a block where that one is, which was freed, with its new owner's tag. */
static char *take_again(const void *freed, size_t size)
{
    enum { TRIES = 200000, KEPT = 64 };
    void *kept[KEPT] = {NULL};
    char *again = NULL;
    for (unsigned i = 0; i < TRIES && !again; i++) {
        char *block = take(size);
        if (tags_strip(block) == tags_strip(freed)) {
            again = block;
            continue;
        }
        give(kept[i % KEPT]);
        kept[i % KEPT] = block;
    }
    for (unsigned i = 0; i < KEPT; i++)
        give(kept[i]);
    CHECK(again);
    return again;
}

static void the_next_owner_has_another_tag(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        char *block = take(sizes[i]);
        for (int round = 0; round < 20; round++) {
            unsigned last = tags_of(block);
            give(block);
            block = take_again(block, sizes[i]);
            CHECK(tags_of(block) && tags_of(block) != last);
        }
        give(block);
    }
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void read_byte(void *address)
{
    signal(SIGSEGV, SIG_DFL); /* cmocka would report it */
    (void)*(volatile char *)address;
}

/* Neither can be done to the byte. */
static void expect_faults(char *address)
{
    char output[4096];
    unit_expect_fault(address);
    int status = unit_run_child(read_byte, address, output, sizeof output);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void what_lies_beside_a_block_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        size_t size = sizes[i], end = round_up(size, GRANULE);
        size_t length = size_classes[word_class(size, MIN_ALIGNMENT)].size;
        char *blocks[100];
        for (unsigned b = 0; b < ARRAY_LENGTH(blocks); b++)
            blocks[b] = take(size);
        for (unsigned b = 0; b < ARRAY_LENGTH(blocks); b += 40) {
            expect_faults(blocks[b] + end);
            expect_faults(blocks[b] + length);
            expect_faults(blocks[b] - 1);
            if (slab_lookup(tags_strip(blocks[b])) == slab_lookup(tags_strip(blocks[b] - length)))
                expect_faults(blocks[b] - length);
            memset(blocks[b], 0x41, size);
        }
        for (unsigned b = 0; b < ARRAY_LENGTH(blocks); b++)
            give(blocks[b]);
    }
}

static void what_was_freed_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        char *block = take(sizes[i]);
        give(block);
        expect_faults(block);
        expect_faults(block + sizes[i] - 1);
        char *again = take_again(block, sizes[i]);
        memset(again, 0x41, sizes[i]);
        expect_faults(block);
        give(again);
    }
}

static void free_it(void *block)
{
    give(block);
}

static void resize_it(void *block)
{
    alloc_resize(block, 10);
}

static void ask_for_its_size(void *block)
{
    alloc_usable_size(block, "malloc_usable_size");
}

static void ask_for_the_rest(void *block)
{
    alloc_object_size(block);
}

static void expect_line(void (*call)(void *), const char *name, const char *what, void *block)
{
    char line[128];
    snprintf(line, sizeof line, "hakmem: %s(): %s %p", name, what, block);
    unit_expect_abort(call, block, line);
}

/* Those of freed blocks, also when they are somebody else's again. */
static void pointers_of_before_are_noticed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        char *block = take(sizes[i]), *again = NULL;
        give(block);
        for (int turn = 0; turn < 2; turn++) {
            expect_line(free_it, "free", "double free of", block);
            expect_line(resize_it, "realloc", "double free of", block);
            expect_line(ask_for_its_size, "malloc_usable_size", "double free of", block);
            expect_line(ask_for_the_rest, "malloc_object_size", "double free of", block);
            again = again ? again : take_again(block, sizes[i]);
        }
        give(again);
    }
}

static void addresses_without_a_tag_are_noticed(void **state)
{
    (void)state;
    char *block = take(100), *large = take(100000), *big = take(3 * MIB);
    void *bare = tags_strip(block);
    char line[128];
    snprintf(
        line, sizeof line, "hakmem: free(): invalid pointer %p: not allocated by hakmem", bare);
    unit_expect_abort(free_it, bare, line);
    expect_faults(bare);
    /* Nor is one with a tag good for what has none. */
    for (int i = 0; i < 2; i++) {
        void *tagged = tags_like(i ? big : large, block);
        snprintf(
            line, sizeof line, "hakmem: free(): invalid pointer %p: not allocated by hakmem",
            tagged);
        unit_expect_abort(free_it, tagged, line);
    }
    snprintf(
        line, sizeof line, "hakmem: free(): invalid pointer %p: inside a block of 100 bytes at %p",
        (void *)(block + 32), (void *)block);
    unit_expect_abort(free_it, block + 32, line);
    give(block);
    give(large);
    give(big);
}

/* ---- No mistakes ----------------------------------------------------------------------------- */

static void realloc_moves_the_end_of_the_tag(void **state)
{
    uint64_t random = 1;
    size_t size = 1, next;
    (void)state;
    char *block = take(size);
    for (int i = 0; i < 3000; i++, size = next) {
        next = 1 + unit_below(&random, 1u << (1 + unit_below(&random, 14)));
        memset(block, 0x41, size);
        block = alloc_resize(block, next);
        assert_non_null(block);
        CHECK(tags_of(block));
        CHECK(unit_all_bytes(block, size_min(size, next), 0x41));
        CHECK(next <= size || unit_all_bytes(block + size, next - size, 0));
        if (i % 100 == 0)
            expect_faults(block + round_up(next, GRANULE));
    }
    give(block);
    /* From and to blocks without tags. */
    block = memset(take(30000), 0x41, 30000);
    block = alloc_resize(block, 100000);
    assert_int_equal(tags_of(block), 0);
    block = alloc_resize(block, 3 * MIB);
    block = alloc_resize(block, 100);
    assert_int_not_equal(tags_of(block), 0);
    CHECK(unit_all_bytes(block, 100, 0x41));
    give(block);
}

static void the_system_takes_pointers_with_tags(void **state)
{
    int ends[2];
    (void)state;
    char *text = strcpy(take(6), "hello"), *read_text = take(6);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, 6), 6);
    assert_int_equal(read(ends[0], read_text, 6), 6);
    assert_string_equal(read_text, "hello");
    close(ends[0]);
    close(ends[1]);
    give(text);
    give(read_text);
}

static void no_bytes_cannot_be_touched(void **state)
{
    (void)state;
    char *nothing = take(0), *aligned = hardened_alloc(0, 64, FORM_MALLOC);
    expect_faults(nothing);
    expect_faults(aligned + GRANULE);
    assert_int_equal(alloc_usable_size(aligned, "test"), 0);
    give(nothing);
    give(aligned);
}

enum { SLOTS = 256 };

static char *slots[SLOTS];

/* Frees what others have allocated, and lets others free. */
static void *exchange_blocks(void *seed)
{
    uint64_t random = (uintptr_t)seed;
    for (int i = 0; i < 20000; i++) {
        size_t size = sizeof(size_t) + unit_below(&random, 1u << (4 + unit_below(&random, 10)));
        char *block = take(size);
        CHECK(unit_all_bytes(block, size, 0));
        memset(block, (int)size | 1, size);
        *(size_t *)block = size;
        block = __atomic_exchange_n(&slots[unit_below(&random, SLOTS)], block, __ATOMIC_ACQ_REL);
        if (!block)
            continue;
        size = *(size_t *)block;
        CHECK(alloc_usable_size(block, "test") == size);
        CHECK(unit_all_bytes(
            block + sizeof size, size - sizeof size, (unsigned char)((int)size | 1)));
        give(block);
    }
    return NULL;
}

static void threads_free_each_others_blocks(void **state)
{
    pthread_t threads[4];
    (void)state;
    for (uintptr_t i = 0; i < ARRAY_LENGTH(threads); i++)
        CHECK(pthread_create(&threads[i], NULL, exchange_blocks, (void *)(i + 1)) == 0);
    for (uintptr_t i = 0; i < ARRAY_LENGTH(threads); i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < SLOTS; i++, slots[i - 1] = NULL)
        give(slots[i]);
    assert_int_equal(live_blocks(), 0);
}

static void use_in_child(void *block)
{
    CHECK(unit_all_bytes(block, 1000, 0x41));
    CHECK(alloc_usable_size(block, "test") == 1000);
    memset(block, 0x42, 1000);
    give(block);
    (void)exchange_blocks((void *)1);
    hardened_flush();
}

static void children_have_their_parents_tags(void **state)
{
    (void)state;
    char *block = memset(take(1000), 0x41, 1000), *freed = take(1000);
    give(freed);
    unit_in_child(use_in_child, block);
    CHECK(unit_all_bytes(block, 1000, 0x41));
    expect_faults(freed);
    expect_faults(block + round_up(1000, GRANULE));
    give(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_have_other_tags),
        cmocka_unit_test(the_next_owner_has_another_tag),
        cmocka_unit_test(what_lies_beside_a_block_faults),
        cmocka_unit_test(what_was_freed_faults),
        cmocka_unit_test(pointers_of_before_are_noticed),
        cmocka_unit_test(addresses_without_a_tag_are_noticed),
        cmocka_unit_test(realloc_moves_the_end_of_the_tag),
        cmocka_unit_test(the_system_takes_pointers_with_tags),
        cmocka_unit_test(no_bytes_cannot_be_touched),
        cmocka_unit_test(threads_free_each_others_blocks),
        cmocka_unit_test(children_have_their_parents_tags),
    };
    if (!turn_on()) {
        puts("skipped: the processor has no tags");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
