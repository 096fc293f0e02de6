/* api/block: what an address is, for every tier, and before and after the block is freed. */
#include "unit.h"

#include "api/alloc.h"
#include "api/block.h"
#include "base/pressure.h"
#include "os/os.h"
#include "reclaim/engine.h"

static const size_t sizes[] = {1, 64, 1024, 1025, 32768, 32769, 131072, 1 << 20, 2 << 20};

static void blocks_of_slabs_are_found_by_any_address(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        char *block = alloc(sizes[i]);
        struct block_info info = block_find(block);
        assert_int_equal(info.kind, BLOCK_SLAB);
        size_t usable = block_usable_size(info, block, "test", false);
        assert_true(usable >= sizes[i]);
        assert_int_equal(usable, size_classes[info.slab->size_class].size);
        assert_ptr_equal(block_find(block + usable - 1).slab, info.slab);
        release(block);
    }
}

static void big_blocks_are_found_near_their_start(void **state)
{
    (void)state;
    char *block = alloc(5 * MIB);
    struct block_info info = block_find(block);
    assert_int_equal(info.kind, BLOCK_BIG);
    assert_int_equal(block_usable_size(info, block, "test", false), 5 * MIB + os_page_size());
    /* The page map knows the 2 MiB that it starts in. */
    assert_int_equal(block_find(block + 1).kind, BLOCK_BIG);
    assert_ptr_equal(block_find(block + 1).big, info.big);
    release(block);
}

static void what_is_not_ours_is_foreign(void **state)
{
    (void)state;
    static char data[64];
    char local[64];
    assert_int_equal(block_find(NULL).kind, BLOCK_FOREIGN);
    assert_int_equal(block_find(data).kind, BLOCK_FOREIGN);
    assert_int_equal(block_find(local).kind, BLOCK_FOREIGN);
    static void *volatile far[] = {(void *)UINTPTR_MAX, (void *)((uintptr_t)1 << 47)};
    for (size_t i = 0; i < ARRAY_LENGTH(far); i++)
        assert_int_equal(block_find(far[i]).kind, BLOCK_FOREIGN);
}

/* Of a superslab, where no slab lies any more. */
static void freed_memory_is_gone(void **state)
{
    (void)state;
    char *kept = alloc(100), *block = alloc(1 << 20);
    char *base = (char *)((uintptr_t)block & ~(uintptr_t)(REGION_SIZE - 1));
    release(block);
    struct heap *heap = heap_enter();
    heap_flush(heap, SIZE_MAX);
    heap_leave(heap);
    reclaim_everything();
    bool mapped = page_map_lookup(base) != NULL;
    assert_int_equal(block_find(block).kind, mapped ? BLOCK_GONE : BLOCK_FOREIGN);
    release(kept);
}

static void ask(void *block)
{
    block_usable_size(block_find(block), block, "test", true);
}

static void expect(char *block, const char *defect)
{
    char output[1024];
    int status = unit_run_child(ask, block, output, sizeof output);
    assert_true(WIFSIGNALED(status));
    assert_memory_equal(output, "hakmem: test(): ", strlen("hakmem: test(): "));
    assert_non_null(strstr(output, defect));
}

static void wrong_pointers_are_named(void **state)
{
    (void)state;
    static char data[64];
    char *small = alloc(200), *big = alloc(5 * MIB);
    expect(small + 8, "misaligned");
    expect(small + 16, "inside");
    expect(big + 4096, "inside");
    expect(data, "not allocated");
    release(small);
    expect(small, "double free");
    release(big);
    expect(big, "double free");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_slabs_are_found_by_any_address),
        cmocka_unit_test(big_blocks_are_found_near_their_start),
        cmocka_unit_test(what_is_not_ours_is_foreign),
        cmocka_unit_test(freed_memory_is_gone),
        cmocka_unit_test(wrong_pointers_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
