/* Small tools that run for a moment: the program starts itself again and again, and every child
 * makes some hundred allocations and ends. What counts is how soon an allocator is ready, and what
 * it costs to load and to leave. */
#include "lab.h"

static struct {
    uint64_t processes, allocations, child;
} settings;

static const struct lab_flag flags[] = {
    {.name = "processes",
     .kind = LAB_COUNT,
     .variable = &settings.processes,
     .standard = 400,
     .least = 1,
     .most = 1000000,
     .unit = "processes",
     .help = "processes to start, one after the other"},
    {.name = "allocations",
     .kind = LAB_COUNT,
     .variable = &settings.allocations,
     .standard = 300,
     .least = 1,
     .most = 1000000,
     .unit = "blocks",
     .help = "blocks that each process allocates; it frees half of them"},
    LAB_CHILD(&settings.child),
};

/* ---- The child ------------------------------------------------------------------------------- */

/* Strings and nodes mostly, and now and then a buffer. */
static uint32_t child_size(uint64_t draw)
{
    return (uint32_t)(draw % 32 ? 16 + lab_below(draw, 240) : 4096 + lab_below(draw, 61440));
}

/* As small tools do, it leaves half of its blocks to the end of the process. */
static void child_work(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    struct lab_random random = lab_random_stream(settings.child);
    struct lab_block block = {NULL, 0, 0};
    for (uint64_t i = 0; i < settings.allocations; i++) {
        uint64_t draw = lab_random_next(&random);
        uint32_t size = child_size(draw);
        struct lab_block previous = block;
        lab_block_allocate(recorder, &block, size, (uint32_t)draw);
        lab_count_size(recorder, size, 1);
        if (i % 2 == 1) {
            lab_block_free(recorder, &previous);
        }
    }
    recorder->operations += settings.allocations + settings.allocations / 2;
}

/* ---- The parent ------------------------------------------------------------------------------ */

/* The clock runs here alone: it holds all that a process costs. */
static void work(struct lab_worker *worker)
{
    lab_clock_start(worker);
    for (uint64_t i = 1; i <= settings.processes; i++) {
        lab_run_child(i);
    }
    uint64_t elapsed_ns = lab_clock_stop(worker);
    lab_figure((double)elapsed_ns / 1e3 / (double)settings.processes, "process_us");
}

int main(int argc, char **argv)
{
    lab_begin(
        "startup", "Starts processes that make some hundred allocations and end.", flags,
        LAB_LENGTH(flags), argc, argv);
    if (settings.child > 0) {
        lab_run(1, child_work);
        return lab_report_to_parent();
    }
    lab_run(1, work);
    return lab_report();
}
