/* The usual mix: a random block of the working set is freed, and one of a random size takes its
 * place. */
#include "replace.h"

static struct replace_settings settings;

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 20000000),
    LAB_WORKING_SET(&settings.working_set, 400),
    REPLACE_STEP(&settings.step),
    LAB_SIZES(&settings.size_min, 16, &settings.size_max, 1040),
    LAB_THREADS(&settings.threads, 1),
};

static void work(struct lab_worker *worker)
{
    const struct lab_sizes *sizes =
        lab_sizes_create(LAB_UNIFORM, settings.size_min, settings.size_max, &worker->random);
    replace_work(worker, &settings, sizes, lab_block_allocate, lab_block_free);
}

int main(int argc, char **argv)
{
    lab_begin(
        "random-mixed", "Replaces random blocks of a working set by blocks of random sizes.", flags,
        LAB_LENGTH(flags), argc, argv);
    replace_check(&settings);
    lab_run(settings.threads, work);
    return lab_report();
}
