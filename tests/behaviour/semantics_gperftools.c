/* Owns the tests of the C functions of gperftools: behaviour 57. */
#include "semantics_support.h"

extern int MallocExtension_GetNumericProperty(const char *property, size_t *value);
extern int MallocExtension_SetNumericProperty(const char *property, size_t value);
extern void MallocExtension_ReleaseFreeMemory(void);
extern void MallocExtension_ReleaseToSystem(size_t bytes);
extern void MallocExtension_MarkThreadIdle(void);
extern void MallocExtension_MarkThreadTemporarilyIdle(void);
extern void MallocExtension_MarkThreadBusy(void);
extern size_t MallocExtension_GetEstimatedAllocatedSize(size_t size);
extern size_t MallocExtension_GetAllocatedSize(const void *block);
extern int MallocExtension_GetOwnership(const void *block);
extern void MallocExtension_GetStats(char *buffer, int length);

static size_t property(const char *name)
{
    size_t value = SIZE_MAX;
    assert_int_equal(MallocExtension_GetNumericProperty(name, &value), 1);
    return value;
}

static void properties_are_the_figures(void **state)
{
    (void)state;
    void *block = malloc(5 * MIB);
    free(malloc(100));
    struct hakmem_stats stats;
    hakmem_get_stats(&stats, sizeof stats);
    assert_int_equal(property("generic.current_allocated_bytes"), stats.live_bytes);
    assert_int_equal(property("generic.heap_size"), stats.mapped_bytes);
    assert_true(property("generic.total_physical_bytes") >= stats.committed_bytes);
    size_t cached = property("tcmalloc.current_total_thread_cache_bytes");
    assert_int_equal(cached, stats.cached_bytes - stats.transfer_bytes);
    assert_int_equal(property("tcmalloc.thread_cache_free_bytes"), cached);
    assert_int_equal(property("tcmalloc.transfer_cache_free_bytes"), stats.transfer_bytes);
    assert_int_equal(property("tcmalloc.pageheap_free_bytes"), stats.retained_bytes);
    size_t pieces = stats.live_bytes + stats.cached_bytes + stats.retained_bytes +
                    property("tcmalloc.central_cache_free_bytes") +
                    property("tcmalloc.pageheap_unmapped_bytes");
    assert_int_equal(pieces, property("generic.heap_size"));
    free(block);
}

static void others_do_not_exist(void **state)
{
    (void)state;
    size_t value = 12345;
    assert_int_equal(MallocExtension_GetNumericProperty("generic", &value), 0);
    assert_int_equal(
        MallocExtension_GetNumericProperty("tcmalloc.max_total_thread_cache_bytes", &value), 0);
    assert_int_equal(MallocExtension_GetNumericProperty(NULL, &value), 0);
    assert_int_equal(value, 12345);
    assert_int_equal(MallocExtension_SetNumericProperty("generic.heap_size", 1), 0);
    assert_int_equal(
        MallocExtension_SetNumericProperty("tcmalloc.max_total_thread_cache_bytes", 1), 0);
}

static void releases_give_memory_back(void **state)
{
    (void)state;
    for (int whole = 0; whole <= 1; whole++) {
        char *block = malloc(40 * MIB);
        memset(block, 1, 40 * MIB);
        free(block);
        assert_true(property("tcmalloc.pageheap_free_bytes") >= 30 * MIB);
        MallocExtension_ReleaseToSystem(0);
        assert_true(property("tcmalloc.pageheap_free_bytes") >= 30 * MIB);
        size_t resident = resident_bytes();
        if (whole)
            MallocExtension_ReleaseFreeMemory();
        else
            MallocExtension_ReleaseToSystem(40 * MIB);
        assert_true(property("tcmalloc.pageheap_free_bytes") < MIB);
        assert_true(resident_bytes() + 30 * MIB < resident);
    }
}

static void idle_threads_cache_nothing(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        free(malloc(500));
        assert_true(property("tcmalloc.thread_cache_free_bytes") > 0);
        if (round)
            MallocExtension_MarkThreadIdle();
        else
            MallocExtension_MarkThreadTemporarilyIdle();
        assert_int_equal(property("tcmalloc.thread_cache_free_bytes"), 0);
        MallocExtension_MarkThreadBusy();
    }
}

static void blocks_are_known(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 1000, 50000, 500000, 5 * MIB};
    int on_the_stack = 0;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        void *block = malloc(sizes[i]);
        assert_int_equal(MallocExtension_GetOwnership(block), 1);
        assert_int_equal(MallocExtension_GetAllocatedSize(block), malloc_usable_size(block));
        assert_true(MallocExtension_GetEstimatedAllocatedSize(sizes[i]) >= sizes[i]);
        free(block);
    }
    assert_int_equal(MallocExtension_GetOwnership(&on_the_stack), 2);
    assert_int_equal(MallocExtension_GetOwnership(NULL), 2);
    assert_int_equal(MallocExtension_GetAllocatedSize(NULL), 0);
}

static void the_report_fits_the_buffer(void **state)
{
    (void)state;
    char buffer[100];
    for (int length = 0; length < 90; length++) {
        memset(buffer, 'x', sizeof buffer);
        MallocExtension_GetStats(buffer, length);
        assert_int_equal(buffer[length], 'x');
        if (length)
            assert_int_equal(strlen(buffer), length - 1);
    }
    assert_ptr_equal(strstr(buffer, "hakmem "), buffer);
    MallocExtension_GetStats(NULL, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(properties_are_the_figures), cmocka_unit_test(others_do_not_exist),
        cmocka_unit_test(releases_give_memory_back),  cmocka_unit_test(idle_threads_cache_nothing),
        cmocka_unit_test(blocks_are_known),           cmocka_unit_test(the_report_fits_the_buffer),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
