/* Processes that make a hundred thousand calls each and end: most programs never reach the state
 * that long benchmarks measure. The time is that of the calls, from the first of the process on:
 * memory is asked for and touched for the first time, tables are cold, nothing is cached. What it
 * costs to load and to leave is in startup. */
#include "replace.h"

static struct replace_settings settings;
static uint64_t processes, child;

static const struct lab_flag flags[] = {
    {.name = "processes",
     .kind = LAB_COUNT,
     .variable = &processes,
     .standard = 20,
     .least = 1,
     .most = 1000000,
     .unit = "processes",
     .help = "processes to start, one after the other"},
    LAB_OPERATIONS(&settings.operations, 100000),
    LAB_WORKING_SET(&settings.working_set, 4096),
    REPLACE_STEP(&settings.step),
    LAB_SIZES(&settings.size_min, 16, &settings.size_max, 1040),
    LAB_THREADS(&settings.threads, 1),
    LAB_CHILD(&child),
};

static void work(struct lab_worker *worker)
{
    /* Every process has a sequence of its own. */
    worker->random = lab_random_stream(child * settings.threads + worker->index);
    const struct lab_sizes *sizes =
        lab_sizes_create(LAB_UNIFORM, settings.size_min, settings.size_max, &worker->random);
    replace_work(worker, &settings, sizes, lab_block_allocate, lab_block_free);
}

int main(int argc, char **argv)
{
    lab_begin(
        "fresh-process", "Starts processes that make 100,000 calls each, and times those.", flags,
        LAB_LENGTH(flags), argc, argv);
    replace_check(&settings);
    if (child > 0) {
        lab_run(settings.threads, work);
        return lab_report_to_parent();
    }
    for (uint64_t i = 1; i <= processes; i++) {
        lab_run_child(i);
    }
    return lab_report();
}
