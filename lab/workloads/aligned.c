/* Aligned blocks, by posix_memalign and aligned_alloc in turns. The alignment of every block is
 * checked; a random block of the working set is replaced at every step. */
#include "lab.h"

static struct {
    uint64_t operations, working_set, alignment_max, size_min, size_max;
} settings;

#define ALIGNMENT_LEAST 32
#define ALIGNMENT_MOST (1 << 20)

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 1000000),
    LAB_WORKING_SET(&settings.working_set, 100),
    {.name = "alignment-max",
     .kind = LAB_BYTES,
     .variable = &settings.alignment_max,
     .standard = ALIGNMENT_MOST,
     .least = ALIGNMENT_LEAST,
     .most = ALIGNMENT_MOST,
     .help = "largest alignment; every power of two from 32 on is as likely as another"},
    LAB_SIZES(&settings.size_min, 16, &settings.size_max, 64 << 10),
};

static void allocate(
    struct lab_recorder *recorder, struct lab_block *block, uint32_t size, uint64_t draw)
{
    uint64_t alignments = (uint64_t)__builtin_ctzll(settings.alignment_max / ALIGNMENT_LEAST) + 1;
    size_t alignment = (size_t)ALIGNMENT_LEAST << lab_below(draw, alignments);
    if (draw & 1) {
        block->address = lab_posix_memalign(recorder, alignment, size);
    } else {
        size = (uint32_t)((size + alignment - 1) & ~(alignment - 1));
        block->address = lab_aligned_alloc(recorder, alignment, size);
    }
    if ((uintptr_t)block->address % alignment != 0) {
        lab_fail(
            "a block of %u bytes is at %p, which is no multiple of %zu", size, block->address,
            alignment);
    }
    block->size = size;
    block->tag = (uint32_t)draw;
    lab_count_size(recorder, size, 1);
    lab_mark(block->address, size, block->tag);
}

static void work(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    struct lab_random random = worker->random;
    const struct lab_sizes *sizes =
        lab_sizes_create(LAB_DOUBLINGS, settings.size_min, settings.size_max, &random);
    uint64_t live = settings.working_set;
    uint64_t allocations = settings.operations / 2;
    struct lab_block *slots = lab_reserve(live * sizeof *slots);

    lab_clock_start(worker);
    for (uint64_t i = 0; i < live; i++) {
        allocate(recorder, &slots[i], lab_sizes_at(sizes, i), lab_random_next(&random));
    }
    for (uint64_t i = live; i < allocations; i++) {
        struct lab_block *slot = &slots[lab_below(lab_random_next(&random), live)];
        lab_block_free(recorder, slot);
        allocate(recorder, slot, lab_sizes_at(sizes, i), lab_random_next(&random));
    }
    for (uint64_t i = 0; i < live; i++) {
        lab_block_free(recorder, &slots[i]);
    }
    lab_clock_stop(worker);

    recorder->operations += 2 * allocations;
    lab_release(slots, live * sizeof *slots);
}

int main(int argc, char **argv)
{
    lab_begin(
        "aligned", "Replaces random blocks by blocks of many sizes and alignments.", flags,
        LAB_LENGTH(flags), argc, argv);
    if (settings.alignment_max & (settings.alignment_max - 1)) {
        lab_reject(
            "alignment-max", "%llu: must be a power of two",
            (unsigned long long)settings.alignment_max);
    }
    lab_require_operations(
        settings.operations, 2 * settings.working_set, "to allocate and free the working set");
    lab_run(1, work);
    return lab_report();
}
