/* phase-change: a program that has passed its peak and goes on with little.
 *
 * Its threads build a peak of blocks and free all but a few percent of them at random places. From
 * then on one thread makes a trickle of calls, as a server after the rush, while the others sleep,
 * or all sleep. Whose memory is it now? The program looks at its resident set when it has freed,
 * and at moments up to 10 seconds later.
 *
 *     rss_peak_kib, rss_after_<t>_ms_kib   the resident set at the peak, and t after the freeing
 *     live_kib                             what the survivors were requested with
 *     settled_rss_kib                      the resident set at the last of these moments
 *     returned_after_<t>_ms_percent        of what the peak had added for the freed blocks, the
 *                                          share that the system has back; `<t>` as above
 *
 * An allocator gives back by pages, so that the survivors decide what can be returned at all: with
 * blocks of 64 bytes and 5% survivors, only one page in 27 has none. The clock covers the building
 * and the freeing, not the trickle; --latency times the calls of the trickle alone, as it is there
 * that an allocator may catch up with the peak. */
#include "chain.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

static struct {
    uint64_t peak, threads, size_min, size_max, sizes, survivors_percent, wait_ms, trickle,
        period_ms;
} settings;

static const struct lab_flag flags[] = {
    {.name = "peak",
     .kind = LAB_BYTES,
     .variable = &settings.peak,
     .standard = 256 << 20,
     .least = 1 << 20,
     .most = UINT64_C(1) << 40,
     .help = "sum of the sizes of the blocks at the peak"},
    LAB_THREADS(&settings.threads, 1),
    {.name = "size-min",
     .kind = LAB_BYTES,
     .variable = &settings.size_min,
     .standard = 512,
     .least = CHAIN_SIZE_LEAST,
     .most = LAB_SIZE_MOST,
     .help = "smallest block of the peak"},
    {.name = "size-max",
     .kind = LAB_BYTES,
     .variable = &settings.size_max,
     .standard = 512,
     .least = CHAIN_SIZE_LEAST,
     .most = LAB_SIZE_MOST,
     .help = "largest block of the peak"},
    LAB_DISTRIBUTION(&settings.sizes, LAB_UNIFORM),
    {.name = "survivors",
     .kind = LAB_COUNT,
     .variable = &settings.survivors_percent,
     .standard = 1,
     .least = 0,
     .most = 100,
     .unit = "%",
     .help = "share of the blocks that outlive the peak"},
    {.name = "wait-ms",
     .kind = LAB_COUNT,
     .variable = &settings.wait_ms,
     .standard = 5000,
     .least = 0,
     .most = 3600000,
     .unit = "ms",
     .help = "how long to look on; the moments up to it are reported"},
    {.name = "trickle",
     .kind = LAB_COUNT,
     .variable = &settings.trickle,
     .standard = 1000,
     .least = 0,
     .most = 100000000,
     .unit = "calls/s",
     .help = "calls of malloc and free meanwhile; 0: none at all"},
    {.name = "period-ms",
     .kind = LAB_COUNT,
     .variable = &settings.period_ms,
     .standard = 10,
     .least = 1,
     .most = 3600000,
     .unit = "ms",
     .help = "the trickle comes in lots, as requests do: how far apart these are"},
};

/* When the resident set is looked at. */
static const uint64_t moments_ms[] = {0, 100, 1000, 2000, 3000, 5000, 10000};

/* Blocks that the trickle holds at a time, and their sizes. */
#define TRICKLE_BLOCKS 16
#define TRICKLE_SIZE_LEAST 16
#define TRICKLE_SIZE_MOST 1024

/* The requests that come in while nothing much happens. */
struct trickle {
    struct lab_block blocks[TRICKLE_BLOCKS]; /* replaced in turn */
    uint64_t requests;                       /* that have come in */
};

static void sleep_until(uint64_t time_ns)
{
    struct timespec time = {
        .tv_sec = (time_t)(time_ns / 1000000000),
        .tv_nsec = (long)(time_ns % 1000000000),
    };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
    }
}

/* Serves the requests that are due at a time; each is a malloc and, later, a free. */
static void serve_until(struct lab_worker *worker, struct trickle *trickle, uint64_t time_ms)
{
    struct lab_recorder *recorder = &worker->recorder;
    for (; trickle->requests < settings.trickle * time_ms / 2000; trickle->requests++) {
        struct lab_block *block = &trickle->blocks[trickle->requests % TRICKLE_BLOCKS];
        if (block->address) {
            lab_block_free(recorder, block);
        }
        uint64_t draw = lab_random_next(&worker->random);
        uint32_t size = TRICKLE_SIZE_LEAST +
                        (uint32_t)lab_below(draw, TRICKLE_SIZE_MOST - TRICKLE_SIZE_LEAST + 1);
        lab_block_allocate(recorder, block, size, (uint32_t)draw);
        lab_count_size(recorder, size, 1);
    }
}

static void trickle_end(struct lab_recorder *recorder, struct trickle *trickle)
{
    for (uint64_t i = 0; i < TRICKLE_BLOCKS; i++) {
        if (trickle->blocks[i].address) {
            lab_block_free(recorder, &trickle->blocks[i]);
        }
    }
    recorder->operations += 2 * trickle->requests;
}

/* Lets the time pass from the end of the freeing, and reports the resident set at each moment.
 * `freed_rss_kib` is what the freed blocks had in it at the peak. */
static void look_on(struct lab_worker *worker, uint64_t rss_peak_kib, double freed_rss_kib)
{
    struct trickle trickle = {0};
    uint64_t start_ns = lab_now_ns();
    uint64_t passed_ms = 0;
    uint64_t settled_rss_kib = 0;
    for (size_t i = 0; i < LAB_LENGTH(moments_ms) && moments_ms[i] <= settings.wait_ms; i++) {
        while (passed_ms < moments_ms[i]) {
            passed_ms += settings.period_ms;
            sleep_until(start_ns + passed_ms * 1000000);
            serve_until(worker, &trickle, passed_ms);
        }
        unsigned long long moment_ms = moments_ms[i];
        uint64_t rss_kib = lab_rss_kib();
        double returned_kib = (double)rss_peak_kib - (double)rss_kib;
        settled_rss_kib = rss_kib;
        lab_figure((double)rss_kib, "rss_after_%llu_ms_kib", moment_ms);
        if (freed_rss_kib > 0) {
            lab_figure(
                100 * returned_kib / freed_rss_kib, "returned_after_%llu_ms_percent", moment_ms);
        }
    }
    lab_figure((double)settled_rss_kib, "settled_rss_kib");
    trickle_end(&worker->recorder, &trickle);
}

/* ---- The peak -------------------------------------------------------------------------------- */

/* Written before lab_run(). */
static const struct lab_sizes *sizes;

/* What the chains of all threads hold; each adds its own, and the clock orders that before the
 * reading. */
static _Atomic uint64_t peak_bytes, live_bytes;

static void build(struct lab_worker *worker, struct chain *chain)
{
    uint64_t share = lab_share(worker, settings.peak);
    while (chain->bytes < share) {
        uint64_t draw = lab_random_next(&worker->random);
        uint32_t size = lab_sizes_at(sizes, draw >> 32);
        chain_append(&worker->recorder, chain, size, (uint32_t)draw);
        lab_count_size(&worker->recorder, size, 1);
    }
    atomic_fetch_add(&peak_bytes, chain->bytes);
}

static void thin(struct lab_worker *worker, struct chain *chain)
{
    chain_thin(&worker->recorder, chain, settings.survivors_percent, &worker->random);
    atomic_fetch_add(&live_bytes, chain->bytes);
}

static void work(struct lab_worker *worker)
{
    struct lab_latency *latency = worker->recorder.latency;
    struct chain chain = {0};
    uint64_t rss_start_kib = lab_rss_kib();

    worker->recorder.latency = NULL;
    lab_clock_start(worker);
    build(worker, &chain);
    lab_clock_stop(worker);
    uint64_t rss_peak_kib = lab_rss_kib();
    lab_clock_start(worker);
    thin(worker, &chain);
    lab_clock_stop(worker);
    if (worker->index == 0) {
        double freed_share = 1 - (double)live_bytes / (double)peak_bytes;
        lab_figure((double)rss_peak_kib, "rss_peak_kib");
        lab_figure((double)live_bytes / 1024, "live_kib");
        worker->recorder.latency = latency;
        look_on(worker, rss_peak_kib, freed_share * (double)(rss_peak_kib - rss_start_kib));
        worker->recorder.latency = NULL;
    }
    /* The other threads sleep here until the first one has looked on. */
    lab_clock_start(worker);
    chain_thin(&worker->recorder, &chain, 0, &worker->random);
    lab_clock_stop(worker);
    worker->recorder.latency = latency;
}

int main(int argc, char **argv)
{
    lab_begin(
        "phase-change", "A peak of blocks, few survivors: what becomes of the memory?", flags,
        LAB_LENGTH(flags), argc, argv);
    if (settings.size_max > settings.peak) {
        lab_reject(
            "size-max", "%llu: must not be above --peak", (unsigned long long)settings.size_max);
    }
    struct lab_random random = lab_random_stream(settings.threads);
    sizes = lab_sizes_create(settings.sizes, settings.size_min, settings.size_max, &random);
    lab_run(settings.threads, work);
    return lab_report();
}
