/* fragment: the sizes drift, and the holes that are left have the wrong size.
 *
 * The program keeps about the same number of bytes live. Round after round it frees a random part
 * of the blocks and allocates as many bytes anew, in blocks a little larger than those before: the
 * hole of a single block is too small for them. Halfway the sizes turn and shrink again, so that
 * small blocks settle in large holes. What is measured is how much memory that takes:
 *
 *     rss_peak_kib                          the largest resident set at the end of a round
 *     live_kib                              what the live blocks were requested with
 *     rss_per_live_first, _peak, _mean,     how many times the live bytes the resident set has
 *     _last                                 grown by since before the first block: after the first
 *                                           filling, at the peak, over all rounds, at the end
 *
 * The clock covers the allocating and the freeing. */
#include "chain.h"

#include <math.h>

static struct {
    uint64_t rounds, live, replace_percent, size_min, size_max;
} settings;

static const struct lab_flag flags[] = {
    {.name = "rounds",
     .kind = LAB_COUNT,
     .variable = &settings.rounds,
     .standard = 40,
     .least = 2,
     .most = 100000,
     .unit = "rounds",
     .help = "how often a part of the blocks is replaced"},
    {.name = "live",
     .kind = LAB_BYTES,
     .variable = &settings.live,
     .standard = 16 << 20,
     .least = 1 << 20,
     .most = UINT64_C(1) << 40,
     .help = "sum of the sizes of the live blocks"},
    {.name = "replace",
     .kind = LAB_COUNT,
     .variable = &settings.replace_percent,
     .standard = 50,
     .least = 1,
     .most = 100,
     .unit = "%",
     .help = "share of the blocks that a round replaces"},
    {.name = "size-min",
     .kind = LAB_BYTES,
     .variable = &settings.size_min,
     .standard = 32,
     .least = CHAIN_SIZE_LEAST,
     .most = LAB_SIZE_MOST,
     .help = "size that the rounds begin and end with"},
    {.name = "size-max",
     .kind = LAB_BYTES,
     .variable = &settings.size_max,
     .standard = 8192,
     .least = CHAIN_SIZE_LEAST,
     .most = LAB_SIZE_MOST,
     .help = "size of the round in the middle"},
};

/* A round draws its sizes from a base up to this share of the base more. */
#define SPREAD_PERCENT 25

/* The smallest size of a round: from size-min to size-max and back, by equal factors. */
static uint64_t base_of(uint64_t round)
{
    double way = 2.0 * (double)round / (double)settings.rounds;
    double share = way < 1 ? way : 2 - way;
    double factor = (double)settings.size_max / (double)settings.size_min;
    return (uint64_t)((double)settings.size_min * pow(factor, share));
}

/* Allocates until the chain holds as many bytes as it should. */
static void fill(struct lab_worker *worker, struct chain *chain, uint64_t base)
{
    uint64_t sizes = 1 + base * SPREAD_PERCENT / 100;
    while (chain->bytes < settings.live) {
        uint64_t draw = lab_random_next(&worker->random);
        uint32_t size = (uint32_t)(base + lab_below(draw, sizes));
        chain_append(&worker->recorder, chain, size, (uint32_t)draw);
        lab_count_size(&worker->recorder, size, 1);
    }
}

/* What the ends of the rounds have shown. */
struct footprint {
    uint64_t rss_start_kib; /* before the first block */
    uint64_t rss_peak_kib;
    double per_live_first, per_live_peak, per_live_sum, per_live_last;
};

static void footprint_add(struct footprint *footprint, const struct chain *chain, uint64_t round)
{
    uint64_t rss_kib = lab_rss_kib();
    double grown_bytes = 1024 * ((double)rss_kib - (double)footprint->rss_start_kib);
    double per_live = grown_bytes / (double)chain->bytes;
    if (round == 0) {
        footprint->per_live_first = per_live;
    }
    footprint->rss_peak_kib = rss_kib > footprint->rss_peak_kib ? rss_kib : footprint->rss_peak_kib;
    footprint->per_live_peak = fmax(per_live, footprint->per_live_peak);
    footprint->per_live_sum += per_live;
    footprint->per_live_last = per_live;
}

static void footprint_report(const struct footprint *footprint, const struct chain *chain)
{
    lab_figure((double)footprint->rss_peak_kib, "rss_peak_kib");
    lab_figure((double)chain->bytes / 1024, "live_kib");
    lab_figure(footprint->per_live_first, "rss_per_live_first");
    lab_figure(footprint->per_live_peak, "rss_per_live_peak");
    lab_figure(footprint->per_live_sum / (double)(settings.rounds + 1), "rss_per_live_mean");
    lab_figure(footprint->per_live_last, "rss_per_live_last");
}

static void work(struct lab_worker *worker)
{
    struct chain chain = {0};
    struct footprint footprint = {.rss_start_kib = lab_rss_kib()};
    for (uint64_t round = 0; round <= settings.rounds; round++) {
        lab_clock_start(worker);
        chain_thin(&worker->recorder, &chain, 100 - settings.replace_percent, &worker->random);
        fill(worker, &chain, base_of(round));
        lab_clock_stop(worker);
        footprint_add(&footprint, &chain, round);
    }
    footprint_report(&footprint, &chain);
    lab_clock_start(worker);
    chain_thin(&worker->recorder, &chain, 0, &worker->random);
    lab_clock_stop(worker);
}

int main(int argc, char **argv)
{
    lab_begin(
        "fragment", "Sizes that drift, so that the holes have the wrong size.", flags,
        LAB_LENGTH(flags), argc, argv);
    lab_run(1, work);
    return lab_report();
}
