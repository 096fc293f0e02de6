/* Zeroed tables that are hardly used: a few words of each are checked to be zero and written, and
 * a random table is freed at every step. What is given back is dirty, so that an allocator that
 * does not clear memory it uses again is found out. */
#include "lab.h"

static struct {
    uint64_t operations, working_set, size_min, size_max;
} settings;

/* calloc gets a count and this size; a request is cut to a multiple of it. */
#define ELEMENT 8
/* Words of a block that are looked at: the ends, where an allocator keeps its links, and others. */
#define WORDS 7

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 25000),
    LAB_WORKING_SET(&settings.working_set, 64),
    LAB_SIZES(&settings.size_min, 64, &settings.size_max, 4 << 20),
};

/* The offset of the word `number` of a block. Two may be the same. */
static size_t word_offset(const struct lab_block *block, unsigned number)
{
    size_t last = block->size - 4;
    switch (number) {
    case 0:
        return 0;
    case 1:
        return last;
    case 2:
        return last < 8 ? last : 8;
    default:
        return lab_below(lab_mix(((uint64_t)block->tag << 8) + number), block->size / 4) * 4;
    }
}

static void allocate(
    struct lab_recorder *recorder, struct lab_block *block, uint32_t size, uint32_t tag)
{
    block->size = size / ELEMENT * ELEMENT;
    block->tag = tag;
    block->address = lab_calloc(recorder, block->size / ELEMENT, ELEMENT);
    lab_count_size(recorder, block->size, 1);
    for (unsigned i = 0; i < WORDS; i++) {
        lab_word_expect(block->address, block->size, word_offset(block, i), 0);
    }
    for (unsigned i = 0; i < WORDS; i++) {
        size_t offset = word_offset(block, i);
        lab_word_write(block->address, offset, ~(tag + (uint32_t)offset));
    }
}

static void release(struct lab_recorder *recorder, const struct lab_block *block)
{
    for (unsigned i = 0; i < WORDS; i++) {
        size_t offset = word_offset(block, i);
        recorder->checksum +=
            lab_word_expect(block->address, block->size, offset, ~(block->tag + (uint32_t)offset));
    }
    lab_free(recorder, block->address);
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
        allocate(recorder, &slots[i], lab_sizes_at(sizes, i), (uint32_t)i);
    }
    for (uint64_t i = live; i < allocations; i++) {
        struct lab_block *slot = &slots[lab_below(lab_random_next(&random), live)];
        release(recorder, slot);
        allocate(recorder, slot, lab_sizes_at(sizes, i), (uint32_t)i);
    }
    for (uint64_t i = 0; i < live; i++) {
        release(recorder, &slots[i]);
    }
    lab_clock_stop(worker);

    recorder->operations += 2 * allocations;
    lab_release(slots, live * sizeof *slots);
}

int main(int argc, char **argv)
{
    lab_begin(
        "calloc-sparse", "Allocates zeroed blocks of many sizes and touches few of their pages.",
        flags, LAB_LENGTH(flags), argc, argv);
    lab_require_operations(
        settings.operations, 2 * settings.working_set, "to allocate and free the working set");
    lab_run(1, work);
    return lab_report();
}
