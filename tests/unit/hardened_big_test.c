/* hardened/big: big blocks of the hardened library lie between what cannot be touched, and cannot
 * be touched themselves after their free, at addresses that are not used again soon. */
#include "unit.h"

#include "api/block.h"
#include "checks/checks.h"
#include "hardened/big.h"
#include "os/os.h"
#include "span/big.h"
#include "span/page_heap.h"

static int start(void **state)
{
    (void)state;
    hardened_start();
    return page_heap_init() ? 0 : -1;
}

static struct big *big_of(const void *block)
{
    struct block_info info = block_find(block);
    CHECK(info.kind == BLOCK_BIG && info.big->region.base == (const char *)block);
    return info.big;
}

static char *make(size_t size, size_t alignment)
{
    struct big *big = big_fenced_make(0, size, alignment);
    assert_non_null(big);
    char *block = big->region.base;
    assert_int_equal((uintptr_t)block % size_max(alignment, MIN_ALIGNMENT), 0);
    assert_int_equal(big_size(big_of(block), block, "test"), size);
    return block;
}

static void end(char *block)
{
    struct big *big = big_of(block);
    if (big_cache_retire(big, block))
        big_fenced_end(big, "free");
    else
        big_size(big, block, "free");
}

static char *page_behind(char *block, size_t size)
{
    return (char *)round_up((uintptr_t)block + size, os_page_size());
}

static void blocks_lie_between_closed_pages(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, LARGE_MAX, BIG_MIN, 3 * MIB, 5 * MIB + 12345, 64 * MIB};
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        for (size_t alignment = 1; alignment <= GIB; alignment *= 64) {
            size_t size = sizes[i], page = os_page_size();
            char *block = make(size, alignment), *behind = page_behind(block, size);
            assert_int_equal(block[0] | block[size - 1], 0);
            block[0] = block[size - 1] = 1;
            if (alignment == 1) {
                assert_true(behind - (block + size) < MIN_ALIGNMENT);
                unit_expect_fault(behind);
                unit_expect_fault((char *)round_down((uintptr_t)block, page) - 1);
            }
            big_cache_check();
            end(block);
            if (alignment == 1)
                unit_expect_fault(block + size - 1);
            big_cache_check();
        }
    }
    assert_null(big_fenced_make(0, (size_t)1 << 60, 16));
    big_fenced_release();
    big_cache_check();
    assert_int_equal(big_stats().live_bytes, 0);
}

static void overflow_into_slack(void *argument)
{
    char *block = make(3 * MIB + 1, 16);
    block[*(ptrdiff_t *)argument] = 1;
    dprintf(2, "%p\n", (void *)block);
    end(block);
}

static void writes_beside_it_are_found(void **state)
{
    (void)state;
    const ptrdiff_t offsets[] = {-1, -8, -32, 3 * MIB + 1, 3 * MIB + 15};
    for (size_t i = 0; i < ARRAY_LENGTH(offsets); i++) {
        ptrdiff_t offset = offsets[i];
        char output[4096];
        int status = unit_run_child(overflow_into_slack, &offset, output, sizeof output);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
        assert_non_null(strstr(output, "hakmem: free(): "));
    }
}

static void free_again(void *block)
{
    end(block);
}

static void addresses_wait(void **state)
{
    (void)state;
    char *first = make(3 * MIB, 16);
    memset(first, 0x55, 3 * MIB);
    end(first);
    for (unsigned i = 0; i < 15; i++) {
        char *block = make(3 * MIB, 16);
        assert_true(block >= first + 3 * MIB || block + 3 * MIB <= first);
        end(block);
    }
    unit_expect_fault(first);
    char line[128];
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", (void *)first);
    unit_expect_abort(free_again, first, line);
    for (unsigned i = 0; i < 1000; i++)
        end(make(3 * MIB + i * 4096, 16));
    big_cache_check();
    assert_true(block_find(first).kind != BLOCK_BIG || big_of(first) != NULL);
}

/* One that is longer than all that may wait does so, too. */
static void the_longest_wait(void **state)
{
    const size_t size = 200 * MIB;
    (void)state;
    char *first = make(size, 16);
    first[0] = 1;
    end(first);
    for (unsigned i = 0; i < 4; i++) {
        char *block = make(size, 16);
        assert_true(block >= first + size || block + size <= first);
        unit_expect_fault(first);
        end(block);
    }
    big_fenced_release();
    big_cache_check();
}

static void resizes(void **state)
{
    (void)state;
    uint64_t random = 7;
    size_t size = 3 * MIB;
    char *block = make(size, 16);
    memset(block, 0x55, size);
    for (unsigned i = 0; i < 200; i++) {
        size_t before = size, wanted = BIG_MIN + unit_below(&random, 8 * MIB);
        struct big *resized = big_fenced_resize(big_of(block), wanted);
        assert_non_null(resized);
        block = resized->region.base;
        size = wanted;
        assert_int_equal(big_size(big_of(block), block, "test"), size);
        CHECK(unit_all_bytes(block, size_min(before, size), 0x55));
        if (size > before)
            CHECK(unit_all_bytes(block + before, size - before, 0));
        memset(block, 0x55, size);
        if (i % 32 == 0)
            unit_expect_fault(page_behind(block, size));
        big_cache_check();
    }
    end(block);
}

/* Not a copy for each step. */
static void grows_by_steps(void **state)
{
    (void)state;
    size_t size = 3 * MIB;
    unsigned moves = 0;
    char *block = make(size, 16);
    for (; size < 30 * MIB; size += 8192) {
        char *resized = big_fenced_resize(big_of(block), size)->region.base;
        moves += resized != block;
        block = resized;
    }
    assert_true(moves < 20);
    end(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_lie_between_closed_pages),
        cmocka_unit_test(writes_beside_it_are_found),
        cmocka_unit_test(addresses_wait),
        cmocka_unit_test(the_longest_wait),
        cmocka_unit_test(resizes),
        cmocka_unit_test(grows_by_steps),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
