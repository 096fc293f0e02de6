/* A server over a long time, cut into epochs. Most blocks live for a moment; the others make up a
 * working set whose size goes slowly up and down, four times in a run, so that every quarter of
 * the run sees the same load. What is looked for: memory that creeps up, and speed that decays.
 *
 * The epochs are equal in work, not in time. */
#include "lab.h"
#include <math.h>

static struct {
    uint64_t epochs, operations, threads, working_set, size_min, size_max;
} settings;

/* Blocks live for this many steps, unless they belong to the working set. */
#define MOMENT 64
/* One step in so many changes the working set. */
#define CHANGE_EVERY 8

static const struct lab_flag flags[] = {
    {.name = "epochs",
     .kind = LAB_COUNT,
     .variable = &settings.epochs,
     .standard = 32,
     .least = 8,
     .most = 1000000,
     .unit = "epochs",
     .help = "parts of the run, each of --operations calls; the length of the run"},
    {.name = "operations",
     .kind = LAB_COUNT,
     .variable = &settings.operations,
     .standard = 1000000,
     .least = 1000,
     .most = UINT64_C(1000000000000),
     .unit = "calls",
     .help = "calls of the allocator that the threads make in an epoch, about"},
    LAB_THREADS(&settings.threads, 2),
    {.name = "working-set",
     .kind = LAB_COUNT,
     .variable = &settings.working_set,
     .standard = 20000,
     .least = 2,
     .most = 100000000,
     .unit = "blocks",
     .help = "blocks alive in all threads at the peak; half as many in between"},
    LAB_SIZES(&settings.size_min, 16, &settings.size_max, 16 << 10),
};

/* Of one epoch; written by worker 0 between two epochs. */
struct epoch {
    double rss_kib;
    double seconds;
};

static struct epoch *epochs;

/* ---- The load -------------------------------------------------------------------------------- */

/* What a thread keeps from epoch to epoch. Places from `live` on are empty. */
struct load {
    struct lab_random random;
    const struct lab_sizes *sizes;
    uint64_t allocated; /* blocks so far; the number of the next one */
    uint64_t calls;
    struct lab_block moments[MOMENT];
    struct lab_block *set;
    uint64_t live;
};

static void allocate(struct lab_recorder *recorder, struct load *load, struct lab_block *block)
{
    uint64_t number = load->allocated++;
    lab_block_allocate(recorder, block, lab_sizes_at(load->sizes, number), (uint32_t)number);
    load->calls++;
}

static void release(struct lab_recorder *recorder, struct load *load, struct lab_block *block)
{
    if (block->address) {
        lab_block_free(recorder, block);
        block->address = NULL;
        load->calls++;
    }
}

/* Replaces a random block of the working set, or lets the set grow or shrink by one towards
 * `wanted` > 0. */
static void change_set(struct lab_recorder *recorder, struct load *load, uint64_t wanted)
{
    if (load->live < wanted) {
        allocate(recorder, load, &load->set[load->live++]);
        return;
    }
    struct lab_block *block = &load->set[lab_below(lab_random_next(&load->random), load->live)];
    release(recorder, load, block);
    if (load->live > wanted) {
        *block = load->set[--load->live];
        load->set[load->live].address = NULL;
    } else {
        allocate(recorder, load, block);
    }
}

static void run_epoch(
    struct lab_recorder *recorder, struct load *load, uint64_t operations, uint64_t wanted)
{
    uint64_t end = load->calls + operations;
    for (uint64_t step = 0; load->calls < end; step++) {
        struct lab_block *moment = &load->moments[step % MOMENT];
        release(recorder, load, moment);
        allocate(recorder, load, moment);
        if (step % CHANGE_EVERY == 0) {
            change_set(recorder, load, wanted);
        }
    }
}

/* The size of the working set in an epoch: up from a half to the whole and down again, in a
 * quarter of the run. */
static uint64_t wanted_in_epoch(uint64_t epoch, uint64_t peak)
{
    uint64_t period = settings.epochs / 4;
    uint64_t phase = epoch % period;
    uint64_t height = 2 * phase < period ? phase : period - phase;
    uint64_t wanted = peak / 2 + peak * height / period;
    return wanted ? wanted : 1;
}

static void work(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    struct load load = {.random = worker->random};
    load.sizes =
        lab_sizes_create(LAB_DOUBLINGS, settings.size_min, settings.size_max, &load.random);
    uint64_t peak = lab_share(worker, settings.working_set);
    load.set = lab_reserve((peak + 1) * sizeof *load.set);
    uint64_t operations = lab_share(worker, settings.operations);

    for (uint64_t epoch = 0; epoch < settings.epochs; epoch++) {
        lab_clock_start(worker);
        run_epoch(recorder, &load, operations, wanted_in_epoch(epoch, peak));
        uint64_t elapsed_ns = lab_clock_stop(worker);
        if (worker->index == 0) {
            epochs[epoch] = (struct epoch){(double)lab_rss_kib(), (double)elapsed_ns / 1e9};
        }
    }
    lab_clock_start(worker);
    for (uint64_t i = 0; i < MOMENT; i++) {
        release(recorder, &load, &load.moments[i]);
    }
    for (uint64_t i = 0; i < load.live; i++) {
        release(recorder, &load, &load.set[i]);
    }
    lab_clock_stop(worker);

    recorder->operations += load.calls;
    lab_count_draws(recorder, load.sizes, 0, load.allocated);
    lab_release(load.set, (peak + 1) * sizeof *load.set);
}

/* ---- The figures ----------------------------------------------------------------------------- */

/* The mean resident set of a quarter of the run, 0 up to 3. */
static double quarter_rss_kib(uint64_t quarter)
{
    uint64_t length = settings.epochs / 4;
    double sum = 0;
    for (uint64_t i = 0; i < length; i++) {
        sum += epochs[quarter * length + i].rss_kib;
    }
    return sum / (double)length;
}

/* The standard deviation of the calls per second, in percent of their mean. The first quarter is
 * left out: there the heap grows. */
static double throughput_variation_percent(void)
{
    uint64_t first = settings.epochs / 4;
    double count = (double)(settings.epochs - first);
    double sum = 0, sum_of_squares = 0;
    for (uint64_t i = first; i < settings.epochs; i++) {
        sum += 1 / epochs[i].seconds;
    }
    double mean = sum / count;
    for (uint64_t i = first; i < settings.epochs; i++) {
        double distance = 1 / epochs[i].seconds - mean;
        sum_of_squares += distance * distance;
    }
    return 100 * sqrt(sum_of_squares / (count - 1)) / mean;
}

int main(int argc, char **argv)
{
    lab_begin(
        "soak", "Works for many epochs and reports memory and speed of each.", flags,
        LAB_LENGTH(flags), argc, argv);
    epochs = lab_reserve(settings.epochs * sizeof *epochs);
    lab_run(settings.threads, work);
    double second_kib = quarter_rss_kib(1);
    lab_figure(100 * (quarter_rss_kib(3) - second_kib) / second_kib, "rss_drift_percent");
    lab_figure(throughput_variation_percent(), "throughput_variation_percent");
    for (uint64_t i = 0; i < settings.epochs; i++) {
        lab_figure(epochs[i].rss_kib, "rss_epoch_%llu_kib", (unsigned long long)i + 1);
    }
    return lab_report();
}
