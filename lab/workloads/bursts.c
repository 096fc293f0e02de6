/* Thousands of blocks are allocated in a row, and all of them freed in a row: a request of a
 * server, a pass of a compiler, a frame of a game. Each thread has bursts of its own; nothing is
 * shared. */
#include "lab.h"

static struct {
    uint64_t operations, threads, count, order, sizes, size_min, size_max;
} settings;

enum { FORWARD, REVERSE, SHUFFLED };

static const char *const orders[] = {"forward", "reverse", "shuffled", NULL};

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 20000000),
    LAB_THREADS(&settings.threads, 1),
    {.name = "count",
     .kind = LAB_COUNT,
     .variable = &settings.count,
     .standard = 5000,
     .least = 1,
     .most = 100000000,
     .unit = "blocks",
     .help = "blocks of a burst"},
    {.name = "order",
     .kind = LAB_CHOICE,
     .variable = &settings.order,
     .standard = FORWARD,
     .choices = orders,
     .help = "order of the frees, against that of the allocations"},
    LAB_DISTRIBUTION(&settings.sizes, LAB_UNIFORM),
    LAB_SIZES(&settings.size_min, 16, &settings.size_max, 512),
};

/* The places of a burst in the order in which they are freed. */
static uint32_t *order_create(struct lab_random *random)
{
    uint64_t count = settings.count;
    uint32_t *order = lab_reserve(count * sizeof *order);
    for (uint64_t i = 0; i < count; i++) {
        order[i] = (uint32_t)(settings.order == REVERSE ? count - 1 - i : i);
    }
    if (settings.order == SHUFFLED) {
        for (uint64_t i = count - 1; i > 0; i--) {
            uint64_t other = lab_below(lab_random_next(random), i + 1);
            uint32_t swapped = order[i];
            order[i] = order[other];
            order[other] = swapped;
        }
    }
    return order;
}

static void work(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    const struct lab_sizes *sizes =
        lab_sizes_create(settings.sizes, settings.size_min, settings.size_max, &worker->random);
    uint64_t count = settings.count;
    uint64_t bursts = lab_share(worker, settings.operations / (2 * count));
    struct lab_block *blocks = lab_reserve(count * sizeof *blocks);
    uint32_t *order = order_create(&worker->random);

    lab_clock_start(worker);
    uint64_t allocated = 0;
    for (uint64_t burst = 0; burst < bursts; burst++) {
        for (uint64_t i = 0; i < count; i++, allocated++) {
            uint32_t size = lab_sizes_at(sizes, allocated);
            lab_block_allocate(recorder, &blocks[i], size, (uint32_t)allocated);
        }
        for (uint64_t i = 0; i < count; i++) {
            lab_block_free(recorder, &blocks[order[i]]);
        }
    }
    lab_clock_stop(worker);

    recorder->operations += 2 * allocated;
    lab_count_draws(recorder, sizes, 0, allocated);
    lab_release(order, count * sizeof *order);
    lab_release(blocks, count * sizeof *blocks);
}

int main(int argc, char **argv)
{
    lab_begin(
        "bursts", "Allocates thousands of blocks, then frees them all; again and again.", flags,
        LAB_LENGTH(flags), argc, argv);
    lab_require_operations(
        settings.operations, 2 * settings.count * settings.threads,
        "to allocate and free one burst in each thread");
    lab_run(settings.threads, work);
    return lab_report();
}
