/* Blocks between the small sizes and the large ones, by several threads, each page written. Two
 * ranges are of interest: 257 to 768 bytes, and 8 to 32 KiB. */
#include "replace.h"

static struct replace_settings settings;

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 20000000),
    LAB_WORKING_SET(&settings.working_set, 256),
    LAB_SIZES(&settings.size_min, 257, &settings.size_max, 768),
    LAB_THREADS(&settings.threads, 2),
};

static void work(struct lab_worker *worker)
{
    replace_work(worker, &settings, lab_block_allocate_pages, lab_block_free_pages);
}

int main(int argc, char **argv)
{
    lab_begin(
        "mid-large", "Replaces random blocks of middle sizes, in threads, and writes every page.",
        flags, LAB_LENGTH(flags), argc, argv);
    replace_check(&settings);
    lab_run(settings.threads, work);
    return lab_report();
}
