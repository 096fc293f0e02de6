/* hardened/front: blocks of the library, what is done to their bytes, and what is noticed. */
#include "hardened_unit.h"

#include "api/alloc.h"
#include "checks/walk.h"
#include "hardened/tags.h"
#include "span/big.h"

static const size_t sizes[] = {1,    8,    9,     24,    25,    100,   1016,   1024,
                               5000, 8184, 32760, 32761, 32768, 50000, 100000, 2 << 20};

/* ---- Bytes ----------------------------------------------------------------------------------- */

static void blocks_are_zero_whatever_was_there(void **state)
{
    enum { BLOCKS = 400, ROUNDS = 4 };
    static char *blocks[BLOCKS];
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        unsigned count = sizes[i] > 50000 ? 10 : BLOCKS;
        for (int round = 0; round < ROUNDS; round++) {
            for (unsigned b = 0; b < count; b++) {
                blocks[b] = take(sizes[i]);
                assert_true((uintptr_t)blocks[b] % MIN_ALIGNMENT == 0);
                CHECK(unit_all_bytes(blocks[b], sizes[i], 0));
                memset(blocks[b], 0x41, sizes[i]);
                assert_int_equal(alloc_usable_size(blocks[b], "test"), sizes[i]);
            }
            for (unsigned b = 0; b < count; b++)
                give(blocks[b]);
        }
    }
    assert_int_equal(live_blocks(), 0);
    hardened_flush();
    walk_all();
}

static void aligned_blocks_are_aligned_and_zero(void **state)
{
    (void)state;
    for (size_t alignment = 1; alignment <= 4 * MIB; alignment *= 2) {
        for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
            char *block = hardened_alloc(sizes[i], alignment, FORM_NEW);
            assert_non_null(block);
            assert_true((uintptr_t)block % alignment == 0);
            CHECK(unit_all_bytes(block, sizes[i], 0));
            memset(block, 0x41, sizes[i]);
            hardened_free(block, FORM_NEW | FORM_ALIGNED);
        }
    }
    assert_int_equal(live_blocks(), 0);
}

/* At any alignment that the range of their addresses has. */
static void no_bytes_cannot_be_touched(void **state)
{
    uint64_t live = live_blocks();
    (void)state;
    for (size_t alignment = 1; alignment <= 4 * REGION_SIZE; alignment *= 2) {
        char *first = hardened_alloc(0, alignment, FORM_MALLOC);
        char *second = hardened_alloc(0, alignment, FORM_MALLOC);
        assert_true(first && second && first != second);
        assert_int_equal((uintptr_t)first % alignment, 0);
        assert_int_equal((uintptr_t)second % alignment, 0);
        if (alignment <= REGION_SIZE) {
            unit_expect_fault(first);
            unit_expect_fault(second);
        }
        hardened_expect(first, 0, alignment, FORM_MALLOC, "test");
        assert_int_equal(alloc_usable_size(first, "test"), 0);
        second = alloc_resize(second, 2 * REGION_SIZE);
        assert_int_equal(alloc_usable_size(second, "test"), 2 * REGION_SIZE);
        give(first);
        give(second);
    }
    assert_int_equal(live_blocks(), live);
}

static void realloc_gains_zeros(void **state)
{
    uint64_t random = 1;
    size_t size = 1, next;
    (void)state;
    unsigned char *block = take(size);
    block[0] = 0x41;
    for (int i = 0; i < 20000; i++, size = next) {
        next = 1 + unit_below(&random, 1u << (1 + unit_below(&random, 18)));
        block = alloc_resize(block, next);
        assert_non_null(block);
        CHECK(unit_all_bytes(block, size_min(size, next), 0x41));
        if (next > size)
            CHECK(unit_all_bytes(block + size, next - size, 0));
        memset(block, 0x41, next);
    }
    give(block);
    for (size = 1; size < 40; size++) {
        block = memset(alloc_resize(take(3 * MIB), 3 * MIB), 0x41, 3 * MIB);
        block = alloc_resize(block, size);
        assert_int_equal(alloc_usable_size(block, "test"), size);
        give(block);
    }
    assert_int_equal(live_blocks(), 0);
}

static void realloc_with_an_alignment_ends_where_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        char *block = hardened_alloc(sizes[i], 64, FORM_MALLOC);
        memset(block, 0x41, sizes[i]);
        for (size_t size = 1 + sizes[i] * 2 / 3; size <= sizes[i] + 1; size += 1 + sizes[i] / 3) {
            size_t kept = size_min(alloc_usable_size(block, "test"), size);
            block = alloc_resize_aligned(block, size, 64);
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % 64, 0);
            assert_int_equal(alloc_usable_size(block, "test"), size);
            CHECK(unit_all_bytes(block, kept, 0x41));
            CHECK(unit_all_bytes(block + kept, size - kept, 0));
            memset(block, 0x41, size);
        }
        give(block);
    }
}

/* An alignment beyond that of slabs makes any block a big one. */
static void short_big_blocks_end_where_asked(void **state)
{
    static const size_t befores[] = {847, 30000, 100000, 3 * MIB};
    const size_t alignment = 4 * MIB;
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(befores); i++) {
        size_t before = befores[i];
        for (size_t size = 1; size < before + before / 4; size += 1 + before / 8) {
            char *block = hardened_alloc(before, alignment, FORM_MALLOC);
            block = alloc_resize(memset(block, 0x41, before), size);
            assert_int_equal(alloc_usable_size(block, "test"), size);
            CHECK(unit_all_bytes(block, size_min(before, size), 0x41));
            hardened_expect(block, size, MIN_ALIGNMENT, FORM_MALLOC, "test");
            give(block);
        }
    }
    assert_int_equal(live_blocks(), 0);
}

/* What is kept of a big block has room for neither no bytes nor any alignment. */
static void extreme_requests_are_told_as_they_were(void **state)
{
    static const size_t alignments[] = {4 * MIB, GIB, 2 * GIB, 4 * GIB, TIB};
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(alignments); i++) {
        for (size_t size = 0; size < 3; size++) {
            size_t alignment = alignments[i];
            char *block = hardened_alloc(size, alignment, FORM_MALLOC);
            if (!block && alignment > GIB)
                continue; /* there are not that many addresses */
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % alignment, 0);
            hardened_expect(block, size, alignment, FORM_MALLOC, "test");
            hardened_expect(block, size, 0, FORM_MALLOC, "test");
            hardened_expect(block, SIZE_MAX, alignment, FORM_MALLOC, "test");
            give(block);
        }
    }
    assert_int_equal(live_blocks(), 0);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static char *victim;

static void free_victim(void *form)
{
    hardened_free(victim, *(const enum form *)form);
}

static void expect(enum form form, const char *format, ...)
{
    char line[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    unit_expect_abort(free_victim, &form, line);
}

static void overwritten_ends_are_noticed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        bool is_large = sizes[i] > MID_MAX - CANARY_SIZE;
        size_t end = is_large ? round_up(sizes[i], MIN_ALIGNMENT)
                              : size_classes[word_class(sizes[i], MIN_ALIGNMENT)].size;
        for (size_t at = sizes[i]; at < size_min(end, sizes[i] + 40); at++) {
            victim = take(sizes[i]);
            if (tags_of(victim) && at >= round_up(sizes[i], MIN_ALIGNMENT)) {
                unit_expect_fault(victim + at);
                give(victim);
                continue;
            }
            victim[at] ^= 0x41;
            expect(FORM_MALLOC, "hakmem: free(): write beyond the end of %p", (void *)victim);
            victim[at] ^= 0x41;
            give(victim);
        }
    }
}

static void write_to_freed(void *at)
{
    give(victim);
    signal(SIGSEGV, SIG_DFL); /* cmocka would report it */
    victim[*(size_t *)at] = 1;
    hardened_flush();
}

static void writes_after_free_are_noticed(void **state)
{
    char line[128];
    (void)state;
    for (size_t size = 1; size <= 30000; size = size * 3 + 5) {
        for (size_t at = 0; at < size; at += 1 + size / 3) {
            victim = take(size);
            snprintf(line, sizeof line, "hakmem: free(): write after free of %p", (void *)victim);
            if (tags_of(victim))
                assert_true(WIFSIGNALED(unit_run_child(write_to_freed, &at, line, sizeof line)));
            else
                unit_expect_abort(write_to_freed, &at, line);
            give(victim);
        }
    }
}

/* To the blocks of a slab that nobody had yet; other slabs may come first. */
static void write_to_unused(void *size)
{
    for (unsigned taken = 0; taken < 100000; taken++) {
        struct slab *slab = slab_lookup(tags_strip(take(*(size_t *)size)));
        size_t length = size_classes[slab->size_class].size;
        for (unsigned i = 0; i < slab->blocks; i++)
            if (word_state(*slab_word(slab, i)) == WORD_UNUSED)
                slab->base[i * length] = 1;
    }
}

static void writes_to_what_nobody_had_are_noticed(void **state)
{
    static const size_t tried[] = {1, 8, 24, 100, 1000, 1016};
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(tried); i++) {
        size_t size = tried[i];
        char output[4096];
        int status = unit_run_child(write_to_unused, &size, output, sizeof output);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
        assert_non_null(strstr(output, "hakmem: malloc(): stray write to 0x"));
    }
}

static void free_twice(void *form)
{
    give(victim);
    free_victim(form);
}

static void second_frees_are_noticed(void **state)
{
    char line[128];
    enum form form = FORM_MALLOC;
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        victim = take(sizes[i]);
        snprintf(line, sizeof line, "hakmem: free(): double free of %p", (void *)victim);
        unit_expect_abort(free_twice, &form, line);
        give(victim);
    }
}

static void frees_by_other_functions_are_noticed(void **state)
{
    static const char *const makers[] = {"malloc", "operator new", "operator new[]"};
    static const char *const enders[] = {"free", "operator delete", "operator delete[]"};
    (void)state;
    /* Sanitizers bring operators of their own, for which all is excused. */
    if (HAKMEM_SANITIZE_THREAD || HAKMEM_SANITIZE_ADDRESS)
        skip();
    for (enum form made = FORM_MALLOC; made <= FORM_NEW_ARRAY; made++) {
        victim = hardened_alloc(64, MIN_ALIGNMENT, made);
        for (enum form freed = FORM_MALLOC; freed <= FORM_NEW_ARRAY; freed++) {
            if (freed != made)
                expect(
                    freed, "hakmem: %s(): wrong function for pointer %p: allocated by %s",
                    enders[freed], (void *)victim, makers[made]);
        }
        hardened_free(victim, made);
        victim = hardened_alloc(64, MIN_ALIGNMENT, made);
        hardened_free(victim, FORM_ANY);
    }
    victim = hardened_alloc(64, 64, FORM_NEW);
    expect(
        FORM_NEW, "hakmem: operator delete(): wrong alignment for pointer %p: 16, not 64",
        (void *)victim);
    hardened_free(victim, FORM_NEW | FORM_ALIGNED);
}

static void tell_wrong_size(void *size)
{
    hardened_expect(victim, *(size_t *)size, 0, FORM_MALLOC, "free_sized");
}

static void tell_wrong_alignment(void *alignment)
{
    hardened_expect(victim, SIZE_MAX, *(size_t *)alignment, FORM_MALLOC, "free_aligned_sized");
}

static void wrong_sizes_and_alignments_are_noticed(void **state)
{
    char line[128];
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        size_t wrong = sizes[i] - 1, alignment = 128;
        victim = hardened_alloc(sizes[i], 64, FORM_MALLOC);
        snprintf(
            line, sizeof line, "hakmem: free_sized(): wrong size for pointer %p: %zu, not %zu",
            (void *)victim, wrong, sizes[i]);
        unit_expect_abort(tell_wrong_size, &wrong, line);
        snprintf(
            line, sizeof line,
            "hakmem: free_aligned_sized(): wrong alignment for pointer %p: 128, not 64",
            (void *)victim);
        unit_expect_abort(tell_wrong_alignment, &alignment, line);
        hardened_expect(victim, sizes[i], 64, FORM_MALLOC, "test");
        give(victim);
        hardened_expect(victim, wrong, 64, FORM_MALLOC, "test");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zero_whatever_was_there),
        cmocka_unit_test(aligned_blocks_are_aligned_and_zero),
        cmocka_unit_test(no_bytes_cannot_be_touched),
        cmocka_unit_test(realloc_gains_zeros),
        cmocka_unit_test(realloc_with_an_alignment_ends_where_asked),
        cmocka_unit_test(short_big_blocks_end_where_asked),
        cmocka_unit_test(extreme_requests_are_told_as_they_were),
        cmocka_unit_test(overwritten_ends_are_noticed),
        cmocka_unit_test(writes_after_free_are_noticed),
        cmocka_unit_test(writes_to_what_nobody_had_are_noticed),
        cmocka_unit_test(second_frees_are_noticed),
        cmocka_unit_test(frees_by_other_functions_are_noticed),
        cmocka_unit_test(wrong_sizes_and_alignments_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
