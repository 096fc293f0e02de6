/* larson: a server whose threads come and go while its objects stay.
 *
 * Every lane is a table of blocks. A thread serves the lane by replacing blocks at random, then it
 * ends, and a new thread goes on with the blocks that it left: it frees them and allocates its own.
 * Allocators that bind memory to threads show what they do with the memory of the dead ones. After
 * Larson and Krishnan, "Memory Allocation for Long-Running Server Applications" (1998), with a
 * fixed amount of work in place of a fixed time.
 *
 * Thread rule: a lane, with its worker, belongs to the worker's thread, and from lab_run_apart()
 * until its return to the thread that serves. */
#include "lab.h"

static struct {
    uint64_t operations, threads, replacements, blocks_per_thread, size_min, size_max;
} settings;

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 15000000),
    LAB_THREADS(&settings.threads, 2),
    {.name = "replacements",
     .kind = LAB_COUNT,
     .variable = &settings.replacements,
     .standard = 18750,
     .least = 1,
     .most = 1000000000,
     .unit = "blocks",
     .help = "blocks that a thread replaces before the next one takes its lane over"},
    {.name = "blocks-per-thread",
     .kind = LAB_COUNT,
     .variable = &settings.blocks_per_thread,
     .standard = 5000,
     .least = 1,
     .most = 10000000,
     .unit = "blocks",
     .help = "blocks that a lane keeps"},
    LAB_SIZES(&settings.size_min, 8, &settings.size_max, 1000),
};

static const struct lab_sizes *sizes;

struct lane {
    struct lab_worker *worker;
    struct lab_block *blocks;
    uint64_t next_size;    /* index into `sizes` */
    uint64_t replacements; /* to be made by the next thread */
};

/* One thread's time at the lane. */
static void serve(void *argument)
{
    struct lane *lane = argument;
    struct lab_recorder *recorder = &lane->worker->recorder;
    struct lab_random random = lane->worker->random;
    uint64_t next_size = lane->next_size;
    for (uint64_t left = lane->replacements; left; left--) {
        uint64_t draw = lab_random_next(&random);
        struct lab_block *block = &lane->blocks[lab_below(draw, settings.blocks_per_thread)];
        lab_block_free(recorder, block);
        lab_block_allocate(recorder, block, lab_sizes_at(sizes, next_size++), (uint32_t)draw);
    }
    lane->worker->random = random;
    lane->next_size = next_size;
    recorder->operations += 2 * lane->replacements;
}

static void work(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    uint64_t count = settings.blocks_per_thread;
    uint64_t left = lab_share(worker, settings.operations) / 2;
    uint64_t first_size = worker->index * 1021; /* the lanes differ in their sizes */
    struct lane lane = {
        .worker = worker,
        .blocks = lab_reserve(count * sizeof *lane.blocks),
        .next_size = first_size,
    };

    lab_clock_start(worker);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t tag = (uint32_t)lab_random_next(&worker->random);
        lab_block_allocate(recorder, &lane.blocks[i], lab_sizes_at(sizes, lane.next_size++), tag);
    }
    for (; left > 0; left -= lane.replacements) {
        lane.replacements = left < settings.replacements ? left : settings.replacements;
        lab_run_apart(serve, &lane);
    }
    for (uint64_t i = 0; i < count; i++) {
        lab_block_free(recorder, &lane.blocks[i]);
    }
    lab_clock_stop(worker);

    recorder->operations += 2 * count;
    lab_count_draws(recorder, sizes, first_size, lane.next_size - first_size);
    lab_release(lane.blocks, count * sizeof *lane.blocks);
}

int main(int argc, char **argv)
{
    lab_begin(
        "larson", "A server whose threads hand their objects on to their successors.", flags,
        LAB_LENGTH(flags), argc, argv);
    struct lab_random random = lab_random_stream(settings.threads);
    sizes = lab_sizes_create(LAB_UNIFORM, settings.size_min, settings.size_max, &random);
    lab_run(settings.threads, work);
    return lab_report();
}
