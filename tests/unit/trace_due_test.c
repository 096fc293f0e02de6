/* trace/due: gaps between samples and decisions have the chances that they should have, and samples
 * stand for as much. Each seed is fixed, so that nothing is left to chance; what is allowed is four
 * standard deviations. */
#include "unit.h"

#include <math.h>

#include "trace/due.h"
#include "trace/sample.h"

enum { COUNT = 1 << 20 };

/* Of so many cases with that chance. */
static void check_share(double found, double chance)
{
    CHECK(fabs(found - COUNT * chance) <= 4 * sqrt(COUNT * chance * (1 - chance)) + 1);
}

static void each_byte_has_the_same_chance(void **state)
{
    static const size_t means[] = {2, 1000, 524288, (size_t)1 << 40};
    uint64_t random = 1;
    (void)state;
    for (size_t m = 0; m < ARRAY_LENGTH(means); m++) {
        CHECK(sample_set_mean(means[m]));
        for (double part = 1.0 / 1024; part <= 16; part *= 4) {
            size_t bytes = (size_t)((double)means[m] * part);
            double found = 0;
            if (!bytes)
                continue;
            for (unsigned i = 0; i < COUNT; i++)
                found += due_decide(&random, bytes);
            check_share(found, -expm1(-(double)bytes / (double)means[m]));
        }
    }
}

static void every_block_may_be_one(void **state)
{
    uint64_t random = 3;
    (void)state;
    CHECK(sample_set_mean(TRACE_EVERY));
    for (unsigned i = 0; i < COUNT; i++) {
        uint8_t round;
        CHECK(
            due_decide(&random, 1) && due_next(&random, 16, POPS_UNTIL_DUE, &round) == 1 && round);
    }
    CHECK(due_stands_for(16) == SITE_PARTS);
}

static void gaps_are_geometric(void **state)
{
    enum { MEAN = 65536, BYTES = 256, GAPS = 12 };
    double longer[GAPS] = {0}, no_sample = 0;
    uint64_t random = 2;
    (void)state;
    CHECK(sample_set_mean(MEAN));
    for (unsigned i = 0; i < COUNT; i++) {
        uint8_t round;
        uint64_t gap = due_next(&random, BYTES, POPS_UNTIL_DUE, &round);
        CHECK(gap && gap <= POPS_UNTIL_DUE);
        no_sample += !round;
        for (unsigned bit = 0; bit < GAPS; bit++)
            longer[bit] += gap > (uint64_t)1 << bit;
    }
    for (unsigned bit = 0; bit < GAPS; bit++)
        check_share(longer[bit], exp(-(double)BYTES / MEAN * (1 << bit)));
    check_share(no_sample, exp(-(double)BYTES / MEAN * POPS_UNTIL_DUE));
    /* A shorter bound ends more of them without a sample, and changes no other. */
    double none = 0, at_once = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        uint8_t round;
        uint64_t gap = due_next(&random, BYTES, 3, &round);
        CHECK(gap && gap <= 3 && (round || gap == 3));
        none += !round;
        at_once += round && gap == 1;
    }
    check_share(none, exp(-(double)BYTES / MEAN * 3));
    check_share(at_once, 1 - exp(-(double)BYTES / MEAN));
}

static void samples_stand_for_one_to_their_chance(void **state)
{
    (void)state;
    for (size_t mean = 1; mean <= (size_t)1 << 40; mean *= 32) {
        CHECK(sample_set_mean(mean));
        for (double size = 1; size < 0x1p47; size *= 1.3) {
            size_t bytes = (size_t)size;
            double exact = SITE_PARTS / -expm1(-(double)bytes / (double)mean);
            CHECK(fabs((double)due_stands_for(bytes) - exact) <= 0.5 + exact * 1e-5);
        }
    }
    CHECK(sample_set_mean(0));
    assert_int_equal(due_stands_for(100), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_has_the_same_chance),
        cmocka_unit_test(every_block_may_be_one),
        cmocka_unit_test(gaps_are_geometric),
        cmocka_unit_test(samples_stand_for_one_to_their_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
