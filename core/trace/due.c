/* See due.h. */
#include "trace/due.h"

#include <string.h>

#include "base/random.h"
#include "os/os.h"
#include "trace/floats.h"

static size_t mean_bytes; /* atomic relaxed, any thread */

void due_set_mean(size_t bytes)
{
    static uint8_t last; /* who sets the mean: one thread at a time */
    ATOMIC_STORE_RELEASE(&trace_round, 0);
    ATOMIC_STORE_RELAXED(&mean_bytes, bytes);
    last = (uint8_t)(last == UINT8_MAX ? 1 : last + 1);
    ATOMIC_STORE_RELEASE(&trace_round, bytes ? last : 0);
}

size_t due_mean(void)
{
    return ATOMIC_LOAD_RELAXED(&mean_bytes);
}

static uint64_t draw(uint64_t *random)
{
    if (UNLIKELY(*random == 0))
        *random = os_clock_ns() ^ (uintptr_t)random << 20;
    return random_next(random);
}

/* ---- Sums: between floats_begin and floats_end ----------------------------------------------- */

struct sum {
    uint64_t drawn, mean, bytes;
    uint64_t parts; /* in these the result of due_stands_for is */
    uint64_t result;
};

/* Above 0, up to 1. */
static double unit_of(uint64_t drawn)
{
    return (double)((drawn >> 11) + 1) * 0x1p-53;
}

/* -ln(unit) for 0 < unit <= 1, to 3e-9 of it: the exponent, and the series of the area tangent for
 * what is left, between the roots of 1/2 and of 2. There is one division in it, since a division
 * takes as long as three terms. */
static double minus_log(double unit)
{
    enum { EXPONENT_BIAS = 1022 };
    static const double ln2 = 0.693147180559945309, root_of_half = 0.707106781186547524;
    uint64_t bits;
    memcpy(&bits, &unit, sizeof bits);
    int exponent = (int)(bits >> 52) - EXPONENT_BIAS;
    bits = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)EXPONENT_BIAS << 52;
    double part;
    memcpy(&part, &bits, sizeof part);
    if (part < root_of_half) {
        part *= 2;
        exponent--;
    }
    double root = (part - 1) / (part + 1), square = root * root;
    double sum = 1.0 / 3 + square * (1.0 / 5 + square * (1.0 / 7 + square * (1.0 / 9)));
    return -(exponent * ln2 + 2 * root * (1 + square * sum));
}

/* 1 - e^-x, to 1e-9 of it: the series for a small part of x, which then doubles. */
static double one_minus_exp(double x)
{
    static const double small = 0.125, large = 40;
    int doublings = 0;
    if (x > large)
        return 1;
    while (x > small) {
        x /= 2;
        doublings++;
    }
    double last = 1.0 / 24 - x * (1.0 / 120 - x * (1.0 / 720));
    double sum = x * (1 - x * (1.0 / 2 - x * (1.0 / 6 - x * last)));
    for (; doublings; doublings--)
        sum *= 2 - sum;
    return sum;
}

static double chance_of(const struct sum *sum)
{
    return one_minus_exp((double)size_max(sum->bytes, 1) / (double)sum->mean);
}

/* ---- What others ask ------------------------------------------------------------------------- */

uint64_t due_stands_for(size_t bytes, uint64_t parts)
{
    struct sum sum = {.mean = due_mean(), .bytes = bytes, .parts = parts};
    if (!sum.mean)
        return 0;
    struct floats kept = floats_begin(&sum);
    sum.result = (uint64_t)((double)sum.parts / chance_of(&sum) + 0.5);
    floats_end(&kept, &sum);
    return sum.result;
}

bool due_decide(uint64_t *random, size_t bytes)
{
    struct sum sum = {.mean = due_mean(), .bytes = bytes};
    if (!sum.mean)
        return false;
    sum.drawn = draw(random);
    struct floats kept = floats_begin(&sum);
    sum.result = unit_of(sum.drawn) <= chance_of(&sum);
    floats_end(&kept, &sum);
    return sum.result;
}

uint64_t due_next(uint64_t *random, size_t bytes, uint8_t *round)
{
    *round = 0;
    uint8_t now = ATOMIC_LOAD_RELAXED(&trace_round);
    struct sum sum = {.mean = due_mean(), .bytes = bytes, .result = POPS_UNTIL_DUE};
    if (LIKELY(!now) || !sum.mean)
        return POPS_UNTIL_DUE;
    sum.drawn = draw(random);
    struct floats kept = floats_begin(&sum);
    double gap = minus_log(unit_of(sum.drawn)) * (double)sum.mean / (double)sum.bytes;
    if (gap < POPS_UNTIL_DUE)
        sum.result = (uint64_t)gap;
    floats_end(&kept, &sum);
    if (sum.result == POPS_UNTIL_DUE)
        return POPS_UNTIL_DUE;
    *round = now;
    return sum.result + 1;
}
