/* churn-threads: many threads, each of which lives for a few microseconds.
 *
 * Every lane starts one thread after the other. A thread frees what its predecessor left to it,
 * allocates its own blocks, frees half of them, and ends. Of the rest, half is freed by the thread
 * of the lane and half by the successor. What is measured is what a thread costs the allocator: to
 * welcome it, to wind it up, and to take its blocks back from others. The cost of starting the
 * thread itself is part of the time, and the same for all.
 *
 * Thread rule: a lane, with its worker, belongs to the worker's thread, and from lab_run_apart()
 * until its return to the short-lived one. */
#include "lab.h"

static struct {
    uint64_t threads, generations, blocks, size_min, size_max;
} settings;

static const struct lab_flag flags[] = {
    LAB_THREADS(&settings.threads, 2),
    {.name = "generations",
     .kind = LAB_COUNT,
     .variable = &settings.generations,
     .standard = 2000,
     .least = 1,
     .most = 100000000,
     .unit = "threads",
     .help = "threads that a lane starts, one after the other"},
    {.name = "blocks",
     .kind = LAB_COUNT,
     .variable = &settings.blocks,
     .standard = 400,
     .least = 1,
     .most = 10000000,
     .unit = "blocks",
     .help = "blocks that each thread allocates"},
    LAB_SIZES(&settings.size_min, 16, &settings.size_max, 512),
};

static const struct lab_sizes *sizes;

/* Who frees a block; drawn from its tag. The thread itself comes twice, so that it frees half. */
enum heir { HEIR_SELF, HEIR_SELF_TOO, HEIR_LANE, HEIR_SUCCESSOR };

static enum heir heir_of(const struct lab_block *block)
{
    return block->tag % 4;
}

struct lane {
    struct lab_worker *worker;
    struct lab_block *blocks;
    uint64_t next_size; /* index into `sizes` */
    bool inherited;     /* `blocks` holds what the predecessor left */
};

static void free_inherited(struct lane *lane, enum heir heir)
{
    for (uint64_t i = 0; i < settings.blocks; i++) {
        if (heir_of(&lane->blocks[i]) == heir) {
            lab_block_free(&lane->worker->recorder, &lane->blocks[i]);
        }
    }
}

/* A short life. */
static void live(void *argument)
{
    struct lane *lane = argument;
    struct lab_recorder *recorder = &lane->worker->recorder;
    if (lane->inherited) {
        free_inherited(lane, HEIR_SUCCESSOR);
    }
    for (uint64_t i = 0; i < settings.blocks; i++) {
        uint32_t tag = (uint32_t)(lab_random_next(&lane->worker->random) >> 32);
        lab_block_allocate(recorder, &lane->blocks[i], lab_sizes_at(sizes, lane->next_size++), tag);
    }
    for (uint64_t i = 0; i < settings.blocks; i++) {
        if (heir_of(&lane->blocks[i]) <= HEIR_SELF_TOO) {
            lab_block_free(recorder, &lane->blocks[i]);
        }
    }
    lane->inherited = true;
}

static void work(struct lab_worker *worker)
{
    uint64_t first_size = worker->index * 1021; /* the lanes differ in their sizes */
    struct lane lane = {
        .worker = worker,
        .blocks = lab_reserve(settings.blocks * sizeof *lane.blocks),
        .next_size = first_size,
    };

    lab_clock_start(worker);
    for (uint64_t generation = 0; generation < settings.generations; generation++) {
        lab_run_apart(live, &lane);
        free_inherited(&lane, HEIR_LANE);
    }
    free_inherited(&lane, HEIR_SUCCESSOR);
    lab_clock_stop(worker);

    uint64_t allocated = settings.generations * settings.blocks;
    worker->recorder.operations += 2 * allocated;
    lab_count_draws(&worker->recorder, sizes, first_size, allocated);
    lab_release(lane.blocks, settings.blocks * sizeof *lane.blocks);
}

int main(int argc, char **argv)
{
    lab_begin(
        "churn-threads", "Many short-lived threads that leave blocks to those after them.", flags,
        LAB_LENGTH(flags), argc, argv);
    struct lab_random random = lab_random_stream(settings.threads);
    sizes = lab_sizes_create(LAB_UNIFORM, settings.size_min, settings.size_max, &random);
    lab_run(settings.threads, work);
    return lab_report();
}
