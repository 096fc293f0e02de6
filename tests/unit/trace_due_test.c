/* trace/due: what is drawn and decided leaves the floating-point environment of the program as it
 * is, and does not depend on it. */
#include "unit.h"

#include <fenv.h>

#include "api/alloc.h"
#include "trace/due.h"
#include "trace/sample.h"

enum { MEAN = 4096, COUNT = 2000 };

/* What comes of so many draws. */
static uint64_t draw_many(void)
{
    uint64_t random = 1, sum = 0;
    for (size_t i = 1; i <= COUNT; i++) {
        uint8_t round;
        sum = sum * 31 + due_next(&random, i, &round);
        sum = sum * 31 + due_decide(&random, i * 7);
        sum = sum * 31 + due_stands_for(i * 13, SITE_PARTS);
    }
    return sum;
}

static void allocate_many(void)
{
    for (size_t i = 0; i < COUNT; i++)
        release(alloc_resize(alloc(i * 31 + 1), i * 17 + 1));
    release(alloc(5 * MIB));
}

static void flags_stay_clear(void **state)
{
    (void)state;
    feclearexcept(FE_ALL_EXCEPT);
    draw_many();
    allocate_many();
    assert_int_equal(fetestexcept(FE_ALL_EXCEPT), 0);
}

static void flags_stay_set(void **state)
{
    (void)state;
    feraiseexcept(FE_INEXACT | FE_UNDERFLOW);
    draw_many();
    allocate_many();
    int set = fetestexcept(FE_ALL_EXCEPT);
    feclearexcept(FE_ALL_EXCEPT);
    assert_int_equal(set & (FE_INEXACT | FE_UNDERFLOW), FE_INEXACT | FE_UNDERFLOW);
}

static void rounding_changes_nothing(void **state)
{
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    uint64_t expected = draw_many();
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(modes); i++) {
        assert_int_equal(fesetround(modes[i]), 0);
        uint64_t sum = draw_many();
        int mode = fegetround();
        fesetround(FE_TONEAREST);
        assert_true(sum == expected);
        assert_int_equal(mode, modes[i]);
    }
}

/* Some processors have no traps, and musl has no name for them. */
static void nothing_is_trapped(void **state)
{
    (void)state;
#ifdef __GLIBC__
    const int traps = FE_INEXACT | FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW;
    feclearexcept(FE_ALL_EXCEPT);
    if (feenableexcept(traps) == -1)
        skip();
    draw_many();
    allocate_many();
    int enabled = fegetexcept();
    fedisableexcept(FE_ALL_EXCEPT);
    assert_int_equal(enabled, traps);
#else
    skip();
#endif
}

static int start(void **state)
{
    (void)state;
    return sample_set_mean(MEAN) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_stay_clear),
        cmocka_unit_test(flags_stay_set),
        cmocka_unit_test(rounding_changes_nothing),
        cmocka_unit_test(nothing_is_trapped),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
