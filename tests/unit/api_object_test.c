/* api/object: bounds for fortified callers, from any address; and what stands in its place in the
 * hardened library. */
#include "unit.h"

#include "api/alloc.h"
#include "api/block.h"
#include "hardened.h"
#include "os/os.h"
#include "span/big.h"

static const size_t sizes[] = {1,    8,     16,    100,    1000,    1024,    1025,    4096,
                               5000, 32768, 40000, 131072, 1 << 20, 2 << 20, 5 << 20, 40 << 20};

static void check_block(char *block)
{
    size_t usable = alloc_usable_size(block, "test");
    const size_t offsets[] = {0, 1, size_min(7, usable), usable / 2, usable - 1};
    for (size_t i = 0; i < ARRAY_LENGTH(offsets); i++) {
        size_t size = alloc_object_size(block + offsets[i]);
        /* Beyond the 2 MiB that a big block starts in, the page map knows nothing. */
        uintptr_t start = (uintptr_t)block, unit = (start + offsets[i]) / LARGE_MAX;
        bool known = unit == start / LARGE_MAX || usable <= LARGE_MAX / 2;
        size_t rest = offsets[i] < usable ? usable - offsets[i] : 0;
        assert_true(size == rest || (!known && size == SIZE_MAX));
        assert_true(alloc_object_size_fast(block + offsets[i]) >= rest);
    }
}

static void it_is_the_rest_of_the_block(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        char *block = alloc(sizes[i]), *aligned = alloc_aligned(sizes[i], 64 * KIB);
        check_block(block);
        check_block(aligned);
        release(block);
        release(aligned);
    }
}

static void blocks_that_nobody_wrote_to_have_their_size(void **state)
{
    (void)state;
    void *blocks[200];
    for (size_t i = 0; i < ARRAY_LENGTH(blocks); i++)
        blocks[i] = alloc(48);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < ARRAY_LENGTH(blocks); i++)
            release(blocks[i]);
        for (size_t i = 0; i < ARRAY_LENGTH(blocks); i++) {
            blocks[i] = alloc(48);
            assert_true(alloc_object_size(blocks[i]) >= 48);
        }
    }
    for (size_t i = 0; i < ARRAY_LENGTH(blocks); i++)
        release(blocks[i]);
}

static void what_is_not_ours_has_no_bound(void **state)
{
    (void)state;
    static char data[64];
    char local[64], *of_libc = malloc(100);
    const void *const foreign[] = {
        data,
        data + 7,
        local,
        of_libc,
        (void *)(uintptr_t)what_is_not_ours_has_no_bound,
        (void *)1,
        (void *)UINTPTR_MAX,
        (void *)((uintptr_t)1 << 47),
        (void *)0x123456789000};
    for (size_t i = 0; i < ARRAY_LENGTH(foreign); i++) {
        assert_true(alloc_object_size(foreign[i]) == SIZE_MAX);
        assert_true(alloc_object_size_fast(foreign[i]) == SIZE_MAX);
    }
    free(of_libc);
}

static void null_and_nothing_have_no_bytes(void **state)
{
    (void)state;
    assert_int_equal(alloc_object_size(NULL), 0);
    assert_int_equal(alloc_object_size_fast(NULL), 0);
    void *nothing = alloc(0);
    if (HARDENED) {
        assert_int_equal(alloc_object_size(nothing), 0);
        assert_int_equal(alloc_object_size_fast(nothing), 0);
    }
    release(nothing);
}

static void ask_beside(void *place)
{
    os_write(STDERR, alloc_object_size(place) == 0 ? "none" : "some", 4);
}

/* Asks for addresses of the block's 2 MiB where no slab lies, and says how many there were, up to
 * three. */
static unsigned ask_in_gaps(const char *block)
{
    char *place = (char *)round_down((uintptr_t)block, REGION_SIZE);
    unsigned found = 0;
    for (size_t offset = 0; offset < REGION_SIZE && found < 3; offset += UNIT_SIZE) {
        char output[4096];
        if (block_find(place + offset + 100).kind != BLOCK_GONE)
            continue;
        int status = unit_run_child(ask_beside, place + offset + 100, output, sizeof output);
        assert_int_equal(WIFSIGNALED(status), HARDENED);
        assert_true(HARDENED || strcmp(output, "none") == 0);
        found++;
    }
    return found;
}

/* Of several blocks, since the 2 MiB around one may be full. */
static void free_units_have_no_bytes(void **state)
{
    (void)state;
    char *blocks[32];
    unsigned count = 0, found = 0;
    while (!found && count < ARRAY_LENGTH(blocks)) {
        blocks[count] = alloc(count ? 300 * KIB : 100);
        found = ask_in_gaps(blocks[count++]);
    }
    assert_true(found > 0);
    while (count)
        release(blocks[--count]);
}

static void ask(void *block)
{
    release(block);
    os_write(STDERR, alloc_object_size(block) == 0 ? "none" : "some", 4);
}

/* A long block is known to be free; of a short one that is known in the hardened library alone,
 * which then ends the program. */
static void freed_blocks_have_no_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        void *block = alloc(sizes[i]);
        char output[16384];
        int status = unit_run_child(ask, block, output, sizeof output);
        bool ended = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
        if (ended)
            assert_true(strstr(output, "malloc_object_size(): double free") != NULL);
        assert_true(ended == HARDENED);
        if (!ended && sizes[i] > SHORT_MAX && sizes[i] < BIG_MIN)
            assert_true(strstr(output, "none") != NULL);
        release(block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_rest_of_the_block),
        cmocka_unit_test(blocks_that_nobody_wrote_to_have_their_size),
        cmocka_unit_test(what_is_not_ours_has_no_bound),
        cmocka_unit_test(null_and_nothing_have_no_bytes),
        cmocka_unit_test(free_units_have_no_bytes),
        cmocka_unit_test(freed_blocks_have_no_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
