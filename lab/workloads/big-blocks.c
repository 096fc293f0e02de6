/* big-blocks: blocks of megabytes come and go, and their pages are used.
 *
 * Each thread keeps a working set of blocks and replaces one at random, again and again. Of every
 * block it touches a part, one word a page: what counts is less the call itself than the page
 * faults after it, and what the allocator does to spare them. With smaller sizes the same program
 * covers medium blocks, from 64 KiB up. Sizes are drawn so that every doubling is as likely as any
 * other. */
#include "lab.h"

static struct {
    uint64_t operations, threads, working_set, size_min, size_max, touch_percent;
} settings;

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 100),
    LAB_THREADS(&settings.threads, 1),
    {.name = "working-set",
     .kind = LAB_COUNT,
     .variable = &settings.working_set,
     .standard = 8,
     .least = 1,
     .most = 1000000,
     .unit = "blocks",
     .help = "blocks that each thread keeps alive"},
    LAB_SIZES(&settings.size_min, 1 << 20, &settings.size_max, 64 << 20),
    {.name = "touch",
     .kind = LAB_COUNT,
     .variable = &settings.touch_percent,
     .standard = 100,
     .least = 0,
     .most = 100,
     .unit = "%",
     .help = "part of each block that is written to, from its beginning, one word a page"},
};

static const struct lab_sizes *sizes;

/* How much of a block is written to. */
static size_t touched(const struct lab_block *block)
{
    size_t part = block->size * settings.touch_percent / 100;
    return part < LAB_SIZE_LEAST ? LAB_SIZE_LEAST : part;
}

static void allocate(
    struct lab_recorder *recorder, struct lab_block *block, uint32_t size, uint32_t tag)
{
    *block = (struct lab_block){lab_malloc(recorder, size), size, tag};
    lab_mark_pages(block->address, touched(block), tag);
}

static void release(struct lab_recorder *recorder, const struct lab_block *block)
{
    lab_verify_pages(recorder, block->address, touched(block), block->tag);
    lab_free(recorder, block->address);
}

static void work(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    uint64_t live = settings.working_set;
    uint64_t allocations = live + lab_share(worker, settings.operations) / 2;
    uint64_t first_size = worker->index * 1021; /* the threads differ in their sizes */
    struct lab_block *blocks = lab_reserve(live * sizeof *blocks);

    lab_clock_start(worker);
    for (uint64_t i = 0; i < allocations; i++) {
        uint64_t draw = lab_random_next(&worker->random);
        struct lab_block *block = i < live ? &blocks[i] : &blocks[lab_below(draw, live)];
        if (i >= live) {
            release(recorder, block);
        }
        allocate(recorder, block, lab_sizes_at(sizes, first_size + i), (uint32_t)draw);
    }
    for (uint64_t i = 0; i < live; i++) {
        release(recorder, &blocks[i]);
    }
    lab_clock_stop(worker);

    recorder->operations += 2 * allocations;
    lab_count_draws(recorder, sizes, first_size, allocations);
    lab_release(blocks, live * sizeof *blocks);
}

int main(int argc, char **argv)
{
    lab_begin(
        "big-blocks", "Blocks of megabytes come and go, and their pages are used.", flags,
        LAB_LENGTH(flags), argc, argv);
    struct lab_random random = lab_random_stream(settings.threads);
    sizes = lab_sizes_create(LAB_DOUBLINGS, settings.size_min, settings.size_max, &random);
    lab_run(settings.threads, work);
    return lab_report();
}
