/* The orders in which programs give blocks back, each at one fixed size:
 *
 *     lifo         a stack: the newest block goes first
 *     fifo         a queue: the oldest block goes first
 *     random       any block of the set goes
 *     interleaved  every other block of a full set goes and comes back, in turns
 *     long-lived   the set stays, and single blocks come and go beside it
 *
 * Each keeps --blocks alive in every thread and is timed on its own. Threads share nothing. */
#include "lab.h"

static struct {
    uint64_t pattern, operations, threads, blocks, size;
} settings;

enum { LIFO, FIFO, RANDOM, INTERLEAVED, LONG_LIVED, ALL };

static const char *const names[] = {"lifo",       "fifo", "random", "interleaved",
                                    "long-lived", "all",  NULL};

static const struct lab_flag flags[] = {
    {.name = "pattern",
     .kind = LAB_CHOICE,
     .variable = &settings.pattern,
     .standard = ALL,
     .choices = names,
     .help = "the order in which blocks are freed; all: one after the other"},
    LAB_OPERATIONS(&settings.operations, 30000000),
    LAB_THREADS(&settings.threads, 1),
    {.name = "blocks",
     .kind = LAB_COUNT,
     .variable = &settings.blocks,
     .standard = 1000,
     .least = 2,
     .most = 100000000,
     .unit = "blocks",
     .help = "blocks that each thread has alive at a time"},
    {.name = "size",
     .kind = LAB_BYTES,
     .variable = &settings.size,
     .standard = 64,
     .least = LAB_SIZE_LEAST,
     .most = LAB_SIZE_MOST,
     .help = "size of every block"},
};

/* What a pattern works on: `set` has settings.blocks places. */
struct stage {
    struct lab_recorder *recorder;
    struct lab_random random;
    struct lab_block *set;
    uint64_t replacements; /* blocks to allocate and free */
};

static void allocate(struct stage *stage, uint64_t at, uint64_t tag)
{
    lab_block_allocate(stage->recorder, &stage->set[at], (uint32_t)settings.size, (uint32_t)tag);
}

static void release(struct stage *stage, uint64_t at)
{
    lab_block_free(stage->recorder, &stage->set[at]);
}

static void fill(struct stage *stage)
{
    for (uint64_t i = 0; i < settings.blocks; i++) {
        allocate(stage, i, i);
    }
}

static void drain(struct stage *stage)
{
    for (uint64_t i = 0; i < settings.blocks; i++) {
        release(stage, i);
    }
}

/* The stack grows to its full height and shrinks to nothing, over and over. */
static void lifo(struct stage *stage)
{
    uint64_t done = 0;
    while (done < stage->replacements) {
        uint64_t left = stage->replacements - done;
        uint64_t height = left < settings.blocks ? left : settings.blocks;
        for (uint64_t i = 0; i < height; i++) {
            allocate(stage, i, done + i);
        }
        for (uint64_t i = height; i-- > 0;) {
            release(stage, i);
        }
        done += height;
    }
}

static void fifo(struct stage *stage)
{
    uint64_t oldest = 0;
    for (uint64_t i = 0; i < stage->replacements; i++) {
        release(stage, oldest);
        allocate(stage, oldest, i);
        oldest = oldest + 1 < settings.blocks ? oldest + 1 : 0;
    }
}

static void random_order(struct stage *stage)
{
    for (uint64_t i = 0; i < stage->replacements; i++) {
        uint64_t draw = lab_random_next(&stage->random);
        uint64_t at = lab_below(draw, settings.blocks);
        release(stage, at);
        allocate(stage, at, draw);
    }
}

/* Rounds over the even places, then over the odd ones: first all are freed, then refilled. */
static void interleaved(struct stage *stage)
{
    uint64_t done = 0;
    for (uint64_t parity = 0; done < stage->replacements; parity = !parity) {
        uint64_t left = stage->replacements - done;
        uint64_t places = (settings.blocks - parity + 1) / 2;
        places = places < left ? places : left;
        for (uint64_t i = 0; i < places; i++) {
            release(stage, 2 * i + parity);
        }
        for (uint64_t i = 0; i < places; i++) {
            allocate(stage, 2 * i + parity, done + i);
        }
        done += places;
    }
}

static void long_lived(struct stage *stage)
{
    struct lab_block passing;
    for (uint64_t i = 0; i < stage->replacements; i++) {
        lab_block_allocate(stage->recorder, &passing, (uint32_t)settings.size, (uint32_t)i);
        lab_block_free(stage->recorder, &passing);
    }
}

static const struct {
    void (*run)(struct stage *stage);
    bool on_full_set; /* the set is full before and after */
} patterns[] = {
    [LIFO] = {lifo, false},
    [FIFO] = {fifo, true},
    [RANDOM] = {random_order, true},
    [INTERLEAVED] = {interleaved, true},
    [LONG_LIVED] = {long_lived, true},
};

/* Runs one pattern with `operations` calls of this thread and reports its time. */
static void run_pattern(struct lab_worker *worker, uint64_t pattern, uint64_t operations)
{
    bool full = patterns[pattern].on_full_set;
    struct stage stage = {
        .recorder = &worker->recorder,
        .random = worker->random,
        .set = lab_reserve(settings.blocks * sizeof *stage.set),
        .replacements = operations / 2 - (full ? settings.blocks : 0),
    };
    lab_clock_start(worker);
    if (full) {
        fill(&stage);
    }
    patterns[pattern].run(&stage);
    if (full) {
        drain(&stage);
    }
    uint64_t elapsed_ns = lab_clock_stop(worker);
    lab_release(stage.set, settings.blocks * sizeof *stage.set);

    uint64_t allocations = operations / 2;
    lab_count_size(&worker->recorder, settings.size, allocations);
    worker->recorder.operations += 2 * allocations;
    if (worker->index == 0) {
        lab_figure((double)elapsed_ns / (2.0 * (double)allocations), "%s_ns", names[pattern]);
    }
}

static void work(struct lab_worker *worker)
{
    uint64_t operations = lab_share(worker, settings.operations);
    if (settings.pattern != ALL) {
        run_pattern(worker, settings.pattern, operations);
        return;
    }
    for (uint64_t pattern = LIFO; pattern < ALL; pattern++) {
        run_pattern(worker, pattern, operations / ALL);
    }
}

int main(int argc, char **argv)
{
    lab_begin(
        "patterns", "Frees blocks of one size in the orders that programs have.", flags,
        LAB_LENGTH(flags), argc, argv);
    uint64_t rounds = settings.pattern == ALL ? ALL : 1;
    lab_require_operations(
        settings.operations, 2 * settings.blocks * rounds * settings.threads,
        "to allocate and free the set of each pattern in each thread");
    lab_run(settings.threads, work);
    return lab_report();
}
