/* map/metadata: records are aligned, zeroed, apart from each other, and used again. */
#define UNIT_FORK _Fork
#include "unit.h"

#include <pthread.h>

#include "map/metadata.h"
#include "os/os.h"

enum { RECORDS = 300, THREADS = 4, LARGEST = 4096 };

struct held {
    unsigned char *record;
    size_t size;
    unsigned char fill;
};

static void a_freed_record_is_used_again(void **state)
{
    (void)state;
    for (size_t size = 1; size <= LARGEST; size += 61) {
        unsigned char *first = metadata_alloc(size), *second = metadata_alloc(size);
        assert_int_equal((uintptr_t)first % 64, 0);
        memset(first, 0xee, size);
        memset(second, 0xee, size);
        metadata_free(first, size);
        metadata_free(second, size);
        unsigned char *third = metadata_alloc(size), *fourth = metadata_alloc(size);
        assert_true((third == first && fourth == second) || (third == second && fourth == first));
        assert_true(unit_all_bytes(third, size, 0));
        assert_true(unit_all_bytes(fourth, size, 0));
        metadata_free(third, size);
        metadata_free(fourth, size);
    }
}

static void toggle(struct held *held, uint64_t *random)
{
    if (held->record) {
        CHECK(unit_all_bytes(held->record, held->size, held->fill));
        metadata_free(held->record, held->size);
        held->record = NULL;
        return;
    }
    held->size = 1 + unit_below(random, LARGEST);
    held->fill = (unsigned char)(1 + unit_below(random, 255));
    held->record = metadata_alloc(held->size);
    CHECK(held->record && (uintptr_t)held->record % 64 == 0);
    CHECK(unit_all_bytes(held->record, held->size, 0));
    memset(held->record, held->fill, held->size);
}

static void *churn(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    struct held held[RECORDS] = {{0}};
    for (int step = 0; step < 20000; step++)
        toggle(&held[unit_below(&random, RECORDS)], &random);
    for (int i = 0; i < RECORDS; i++)
        if (held[i].record)
            toggle(&held[i], &random);
    return NULL;
}

static void records_keep_their_contents(void **state)
{
    (void)state;
    churn((void *)99);
}

static void threads_get_records_of_their_own(void **state)
{
    (void)state;
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void the_same_load_twice_takes_no_more_memory(void **state)
{
    (void)state;
    churn((void *)5);
    size_t before = metadata_bytes();
    uint64_t maps = os_counts[OS_MMAP];
    churn((void *)5);
    assert_int_equal(metadata_bytes(), before);
    assert_int_equal(os_counts[OS_MMAP], maps);
}

static void first_records(void *argument)
{
    (void)argument;
    uint64_t maps = os_counts[OS_MMAP];
    CHECK(metadata_bytes() == 0);
    size_t taken = 0;
    for (; taken < 60 * KIB; taken += 1024)
        CHECK(metadata_alloc(1024));
    CHECK(os_counts[OS_MMAP] == maps);
    CHECK(metadata_bytes() >= taken && metadata_bytes() <= 64 * KIB);
    /* Later ones come from the system and are accounted for. */
    for (; taken < 2 * MIB; taken += 4096)
        CHECK(metadata_alloc(4096));
    CHECK(metadata_bytes() >= taken);
    CHECK(os_counts[OS_MMAP] > maps && os_counts[OS_MMAP] < maps + 20);
}

static void no_memory(void *argument)
{
    (void)argument;
    struct rlimit none = {4096, 4096};
    void *last = NULL, *record;
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    for (int i = 0; (record = metadata_alloc(4096)) != NULL; i++) {
        CHECK(i < 1000);
        last = record;
    }
    CHECK(last);
    CHECK(!metadata_alloc(4096));
    metadata_free(last, 4096);
    CHECK(metadata_alloc(4096) == last);
    CHECK(!metadata_alloc(4096));
}

/* Runs first: the others use the first chunk up. */
static void a_small_program_maps_nothing(void **state)
{
    (void)state;
    unit_in_child(first_records, NULL);
    unit_in_child(no_memory, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_program_maps_nothing),
        cmocka_unit_test(a_freed_record_is_used_again),
        cmocka_unit_test(records_keep_their_contents),
        cmocka_unit_test(threads_get_records_of_their_own),
        cmocka_unit_test(the_same_load_twice_takes_no_more_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
