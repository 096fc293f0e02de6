/* malloc, a write, free, and again: the latency of the pair, where nothing else is in the way.
 *
 * How much of the block the program writes first matters to allocators that read what is in a freed
 * block: a load of eight bytes right after a store of one has to wait for the store. A reference
 * count or a small first field is such a store.
 *
 * The block is read back as it was written before it goes. */
#include "lab.h"

static struct {
    uint64_t operations, threads, size, written;
} settings;

enum { ONE, FOUR, EIGHT };

static const char *const widths[] = {"1", "4", "8", NULL};

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 20000000),
    LAB_THREADS(&settings.threads, 1),
    {.name = "size",
     .kind = LAB_BYTES,
     .variable = &settings.size,
     .standard = 64,
     .least = LAB_SIZE_LEAST,
     .most = LAB_SIZE_MOST,
     .help = "size of every block"},
    {.name = "written",
     .kind = LAB_CHOICE,
     .variable = &settings.written,
     .standard = EIGHT,
     .choices = widths,
     .help = "bytes that are written at the beginning of a block, in one store"},
};

/* Inlined with a constant width, so that a store is one instruction. */
static inline __attribute__((always_inline)) uint64_t pairs(
    struct lab_recorder *recorder, uint64_t count, uint64_t seed, size_t width)
{
    uint64_t checksum = 0;
    for (uint64_t i = 0; i < count; i++) {
        char *block = lab_malloc(recorder, settings.size);
        uint64_t value = seed + i;
        memcpy(block, &value, width);
        /* The compiler must not know what is in the block. */
        __asm__ volatile("" : : "r"(block) : "memory");
        uint64_t found = 0;
        memcpy(&found, block, width);
        checksum += found;
        lab_free(recorder, block);
    }
    return checksum;
}

static void work(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    uint64_t count = lab_share(worker, settings.operations / 2);
    uint64_t seed = lab_random_next(&worker->random);
    lab_clock_start(worker);
    switch (settings.written) {
    case ONE:
        recorder->checksum += pairs(recorder, count, seed, 1);
        break;
    case FOUR:
        recorder->checksum += pairs(recorder, count, seed, 4);
        break;
    default:
        recorder->checksum += pairs(recorder, count, seed, 8);
        break;
    }
    uint64_t elapsed_ns = lab_clock_stop(worker);
    recorder->operations += 2 * count;
    lab_count_size(recorder, settings.size, count);
    if (worker->index == 0) {
        lab_figure((double)elapsed_ns / (double)count, "pair_ns");
    }
}

int main(int argc, char **argv)
{
    lab_begin(
        "one-block", "Allocates, writes and frees one block, again and again.", flags,
        LAB_LENGTH(flags), argc, argv);
    lab_require_operations(
        settings.operations, 2 * settings.threads, "to allocate and free a block in each thread");
    lab_run(settings.threads, work);
    return lab_report();
}
