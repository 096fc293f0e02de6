/* Blocks of one range of sizes, by several threads that share nothing: from 257 bytes over the
 * middle sizes to many megabytes.
 *
 * What of a block is touched decides what it costs: with --touch pages every page is there, with
 * --touch first the first one alone, and an allocator that keeps memory by bytes reserved shows.
 * Programs round their sizes up and add a header of their own; --jitter N draws powers of two times
 * the smallest size, and adds up to N - 1 bytes. */
#include "replace.h"

static struct replace_settings settings;
static uint64_t touch, jitter;

enum { PAGES, FIRST };

static const char *const touches[] = {"pages", "first", NULL};

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 20000000),
    LAB_WORKING_SET(&settings.working_set, 256),
    REPLACE_STEP(&settings.step),
    LAB_SIZES(&settings.size_min, 257, &settings.size_max, 768),
    {.name = "jitter",
     .kind = LAB_BYTES,
     .variable = &jitter,
     .standard = 0,
     .least = 0,
     .most = 1 << 20,
     .help = "sizes are powers of two times the smallest, plus 0 to N - 1; 0: any size"},
    {.name = "touch",
     .kind = LAB_CHOICE,
     .variable = &touch,
     .standard = PAGES,
     .choices = touches,
     .help = "what is written into a block: a word a page, or the first eight bytes"},
    LAB_THREADS(&settings.threads, 2),
};

static void work(struct lab_worker *worker)
{
    const struct lab_sizes *sizes =
        jitter
            ? lab_sizes_create_steps(settings.size_min, settings.size_max, jitter, &worker->random)
            : lab_sizes_create(LAB_UNIFORM, settings.size_min, settings.size_max, &worker->random);
    if (touch == FIRST) {
        replace_work(worker, &settings, sizes, lab_block_allocate_first, lab_block_free_first);
    } else {
        replace_work(worker, &settings, sizes, lab_block_allocate_pages, lab_block_free_pages);
    }
}

int main(int argc, char **argv)
{
    lab_begin(
        "mid-large", "Replaces random blocks of middle and large sizes, in threads.", flags,
        LAB_LENGTH(flags), argc, argv);
    replace_check(&settings);
    lab_run(settings.threads, work);
    return lab_report();
}
