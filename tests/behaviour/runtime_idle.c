/* Programs that have almost nothing to do any more, and threads that wait: what they freed goes
 * back to the system (behaviour 51).
 */
#include "runtime_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define PEAK_BYTES ((size_t)400 << 20)

static void nap_ms(long milliseconds)
{
    const struct timespec nap = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&nap, NULL);
}

/* Memory that is no business of the allocator's. */
static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    return memory;
}

static struct peak {
    size_t block_bytes;
    unsigned survivors; /* one in so many is not freed; 0: none */
} peak;

/* A peak is freed, and then there are ten calls in two seconds. */
static void peak_and_few_calls(void)
{
    size_t count = PEAK_BYTES / peak.block_bytes;
    void **blocks = map(count * sizeof *blocks);
    long before = resident_kib();
    for (size_t i = 0; i < count; i++) {
        REQUIRE((blocks[i] = malloc(peak.block_bytes)) != NULL);
        memset(blocks[i], 1, peak.block_bytes);
    }
    REQUIRE(resident_kib() - before > (long)(PEAK_BYTES / 1024 / 10 * 9));
    for (size_t i = 0; i < count; i++)
        if (!peak.survivors || i % peak.survivors)
            free(blocks[i]);
    guard_step();
    for (int call = 0; call < 10; call++) {
        nap_ms(200);
        free(malloc(100));
    }
    /* The array has pages, too, and survivors keep theirs. */
    long kept = (long)(count * sizeof *blocks / 1024);
    if (peak.survivors)
        kept += (long)(count / peak.survivors * (peak.block_bytes + 4096) / 1024);
    REQUIRE(resident_kib() - before - kept < (long)(PEAK_BYTES / 1024 / 10));
}

static void test_few_calls_give_a_peak_back(void **state)
{
    (void)state;
    static const struct peak peaks[] = {
        {64, 0}, {500, 0}, {4096, 20}, {40960, 0}, {3 << 20, 0},
    };
    for (size_t i = 0; i < sizeof peaks / sizeof *peaks; i++) {
        peak = peaks[i];
        assert_int_equal(run_guarded(peak_and_few_calls, 30), 0);
    }
}

int main(void)
{
    (void)hakmem_version();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_calls_give_a_peak_back),
    };
    return cmocka_run_group_tests_name("runtime_idle", tests, NULL, NULL);
}
