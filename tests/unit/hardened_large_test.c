/* slab/large: a large block ends before what cannot be touched, and cannot be touched itself after
 * its free; what is written beside it is found; it grows and shrinks where it is. */
#include "unit.h"

#include <sys/resource.h>

#include "checks/checks.h"
#include "hardened/fence.h"
#include "hardened/front.h"
#include "hardened/large.h"
#include "os/os.h"
#include "slab/shard.h"
#include "span/page_heap.h"

static int start(void **state)
{
    (void)state;
    hardened_start();
    return page_heap_init() ? 0 : -1;
}

static char *take(size_t size, size_t alignment)
{
    unsigned size_class = large_class(size, alignment);
    unsigned units = (unsigned)size_max(alignment >> UNIT_SHIFT, 1);
    void *block = NULL;
    assert_int_not_equal(size_class, CLASS_NONE);
    if (units > 1)
        bin_refill(HARDENED_SHARD, size_class, &block, 1, units, REFILL_MAP);
    for (enum refill cost = REFILL_USED; !block && cost <= REFILL_MAP; cost++)
        bin_refill(HARDENED_SHARD, size_class, &block, 1, 1, cost);
    assert_non_null(block);
    struct slab *slab = slab_lookup(block);
    char *opened = large_open(slab, size, alignment);
    assert_non_null(opened);
    assert_ptr_equal(slab_lookup(opened), slab);
    assert_int_equal(slab_index(slab, opened, "test"), 0);
    assert_int_equal((uintptr_t)opened % size_max(alignment, MIN_ALIGNMENT), 0);
    return opened;
}

static char *page_behind(char *block, size_t size)
{
    return (char *)round_up((uintptr_t)block + size, os_page_size());
}

static void end(char *block, size_t size)
{
    struct slab *slab = slab_lookup(block);
    assert_true(large_is_whole(slab, size));
    large_end(slab, size);
}

/* What is freed next is none of many. */
static void rest(void)
{
    enum { REST_MS = 40 };
    os_sleep_ms(REST_MS);
}

static void blocks_end_at_pages(void **state)
{
    (void)state;
    static const size_t sizes[] = {MID_MAX + 1, 40000, 50000, 65536, 131072, 1000001, 2000000};
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        for (size_t alignment = 1; alignment <= MIB; alignment *= 16) {
            char *block = take(sizes[i], alignment), *behind = page_behind(block, sizes[i]);
            assert_true(unit_all_bytes(block, sizes[i], 0));
            memset(block, 0x55, sizes[i]);
            if (alignment <= MIN_ALIGNMENT)
                assert_true(behind - (block + sizes[i]) < MIN_ALIGNMENT);
            if (alignment == 1) {
                unit_expect_fault(behind);
                rest();
            }
            end(block, sizes[i]);
            if (alignment == 1)
                unit_expect_fault(block);
        }
    }
    bin_check_all();
    assert_int_equal(large_class(LARGE_MAX, 16), CLASS_NONE);
}

static void writes_beside_it_are_found(void **state)
{
    (void)state;
    const size_t size = 50001;
    char *block = take(size, 16);
    struct slab *slab = slab_lookup(block);
    memset(block, 0x55, size);
    assert_true(large_is_whole(slab, size));
    for (size_t distance = 1; distance <= 32; distance++) {
        block[-(ptrdiff_t)distance] = 1;
        assert_false(large_is_whole(slab, size));
        block[-(ptrdiff_t)distance] = 0;
    }
    for (char *at = block + size; at < page_behind(block, size); at++) {
        *at = 1;
        assert_false(large_is_whole(slab, size));
        *at = 0;
    }
    end(block, size);
}

static void grows_and_shrinks(void **state)
{
    (void)state;
    size_t size = 100000, before;
    char *block = take(size, 16);
    struct slab *slab = slab_lookup(block);
    size_t end_of_slab = size_classes[slab->size_class].size - os_page_size();
    size_t most = end_of_slab - (uintptr_t)block % UNIT_SIZE;
    uint64_t random = 1;
    memset(block, 0x55, size);
    for (unsigned i = 0; i < 2000; i++) {
        before = size;
        size = 1 + unit_below(&random, (unsigned)most);
        assert_true(large_resize(slab, before, size));
        assert_true(large_is_whole(slab, size));
        CHECK(unit_all_bytes(block, size_min(before, size), 0x55));
        if (size > before)
            CHECK(unit_all_bytes(block + before, size - before, 0));
        memset(block, 0x55, size);
        if (i % 256 == 0)
            unit_expect_fault(page_behind(block, size));
    }
    assert_false(large_resize(slab, size, most + 1));
    end(block, size);
}

static void addresses_wait(void **state)
{
    (void)state;
    const size_t size = 50000;
    char *first = take(size, 16);
    memset(first, 0x55, size);
    rest();
    end(first, size);
    for (unsigned i = 0; i < 200; i++) {
        char *block = take(size, 16);
        assert_ptr_not_equal(block, first);
        memset(block, 0x55, size);
        end(block, size);
    }
    unit_expect_fault(first);
    large_release();
    bin_check_all();
    /* All of them read as zero when they are used again. */
    for (unsigned i = 0; i < 1000; i++) {
        char *block = take(size, 16);
        assert_true(unit_all_bytes(block, size, 0));
        memset(block, 0x55, size);
        end(block, size);
    }
    large_release();
    bin_check_all();
}

/* These two in processes of their own. */
static void write_and_take(void *block)
{
    ((char *)block)[40000] = 1;
    large_release();
    for (unsigned i = 0; i < 100; i++)
        take(50000, 16);
}

static void write_and_look(void *block)
{
    ((char *)block)[40000] = 1;
    large_look();
}

static void expect_write_found(void (*write)(void *block), void *block)
{
    char output[16384];
    int status = unit_run_child(write, block, output, sizeof output);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(output, "(): write after free of 0x"));
}

/* Of many that are freed at once the memory stays; what is written to it is found. */
static void blocks_of_bursts_are_cleared(void **state)
{
    enum { ROUNDS = 100000 };
    const size_t size = 50000;
    char *block;
    unsigned round = 0;
    (void)state;
    do {
        block = take(size, 16);
        CHECK(unit_all_bytes(block, size, 0));
        memset(block, 0x55, size);
        end(block, size);
    } while (!unit_is_resident(block) && round++ < ROUNDS);
    assert_true(round < ROUNDS);
    assert_true(unit_all_bytes(block, size, 0));
    expect_write_found(write_and_take, block);
    expect_write_found(write_and_look, block);
    large_look();
    bin_check_all();
}

/* Of those that are freed in a tick of the clock the first eight are closed. */
static void few_of_a_tick_are_closed(void **state)
{
    enum { BLOCKS = 12, CLOSED = 8, TRIES = 100 };
    const size_t size = 50000;
    char *blocks[BLOCKS];
    bool same_tick = false;
    (void)state;
    for (unsigned try = 0; try < TRIES && !same_tick; try++) {
        for (unsigned i = 0; i < BLOCKS; i++)
            memset(blocks[i] = take(size, 16), 0x55, size);
        rest();
        uint64_t now_ms = os_clock_ms();
        for (unsigned i = 0; i < BLOCKS; i++)
            end(blocks[i], size);
        same_tick = os_clock_ms() == now_ms;
    }
    assert_true(same_tick);
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_int_equal(unit_is_resident(blocks[i]), i >= CLOSED);
    large_release();
    bin_check_all();
}

/* A shorter block ends where the one before it did, before closed pages; what lies before it is
 * looked at. */
static void shorter_blocks_of_bursts_end_there(void **state)
{
    enum { ROUNDS = 100000, BEFORE = 5000 };
    uint64_t random = 1;
    bool shorter = false;
    (void)state;
    for (unsigned i = 0; i < ROUNDS && !shorter; i++) {
        size_t size = 33000 + unit_below(&random, 28000);
        char *block = take(size, 16);
        CHECK(unit_all_bytes(block, size, 0));
        memset(block, 0x55, size);
        shorter = (uintptr_t)block % UNIT_SIZE > BEFORE;
        if (shorter) {
            struct slab *slab = slab_lookup(block);
            block[-BEFORE] = 1;
            assert_false(large_is_whole(slab, size));
            block[-BEFORE] = 0;
            unit_expect_fault(page_behind(block, size));
            /* It grows where it is, and becomes shorter. */
            assert_true(large_resize(slab, size, size + 1));
            assert_true(large_resize(slab, size + 1, 100));
            unit_expect_fault(page_behind(block, 100));
            size = 100;
        }
        end(block, size);
    }
    assert_true(shorter);
    large_release();
    bin_check_all();
}

static void write_and_take_longest(void *block)
{
    ((char *)block)[4000] = 1;
    large_release();
    for (unsigned i = 0; i < 100; i++)
        take(LARGE_MAX - os_page_size(), 16);
}

static long page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* A block whose superslab has no fence, and that has it for itself. */
static char *take_unfenced(size_t size)
{
    char *block = take(size, 16);
    struct superslab *superslab = slab_lookup(block)->superslab;
    assert_true(fence_open(superslab->fence, superslab->region.base, REGION_SIZE));
    superslab->fence = FENCE_NONE;
    memset(block, 0x55, size);
    return block;
}

/* What cannot be closed has no memory while it is free, nor is it read page by page; of what is
 * written then the first page is seen, and the next owner sees nothing. */
static void without_fences_blocks_are_purged(void **state)
{
    enum { FAULTS_MAX = 32, TRIES = 32 };
    const size_t size = LARGE_MAX - os_page_size(), far = 10 * os_page_size();
    bool again = false;
    (void)state;
    for (unsigned try = 0; try < TRIES && !again; try++) {
        char *block = take_unfenced(size);
        end(block, size);
        assert_false(unit_is_resident(block));
        expect_write_found(write_and_take_longest, block);
        long before = page_faults();
        block[far] = 1;
        large_release();
        char *next = take(size, 16);
        /* These sanitizers have page faults of their own. */
        bool sanitized = HAKMEM_SANITIZE_THREAD || HAKMEM_SANITIZE_ADDRESS;
        assert_true(sanitized || page_faults() - before < FAULTS_MAX);
        assert_true(unit_all_bytes(next, size, 0));
        again = next == block;
        end(next, size);
    }
    assert_true(again);
    large_release();
    bin_check_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_end_at_pages),
        cmocka_unit_test(writes_beside_it_are_found),
        cmocka_unit_test(grows_and_shrinks),
        cmocka_unit_test(addresses_wait),
        cmocka_unit_test(blocks_of_bursts_are_cleared),
        cmocka_unit_test(few_of_a_tick_are_closed),
        cmocka_unit_test(shorter_blocks_of_bursts_end_there),
        cmocka_unit_test(without_fences_blocks_are_purged),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
