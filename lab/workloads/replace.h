/* The loop of random-mixed and mid-large: a set of live blocks, of which a random one is replaced
 * at every step.
 *
 * This is where allocators of 3 to 7 ns per call are compared, so the loop itself has to be lean:
 * one random number for the slot and the tag, one load for the size. */
#ifndef REPLACE_H
#define REPLACE_H

#include "lab.h"

struct replace_settings {
    uint64_t operations, threads, working_set, size_min, size_max;
};

static inline void replace_check(const struct replace_settings *settings)
{
    lab_require_operations(
        settings->operations, 2 * settings->working_set * settings->threads,
        "to allocate and free the working set of all threads");
}

typedef void replace_allocate(
    struct lab_recorder *recorder, struct lab_block *block, uint32_t size, uint32_t tag);
typedef void replace_free(struct lab_recorder *recorder, const struct lab_block *block);

/* `allocate` and `release` are constants of the caller, so that they are inlined. */
static inline __attribute__((always_inline)) void replace_work(
    struct lab_worker *worker, const struct replace_settings *settings, replace_allocate *allocate,
    replace_free *release)
{
    struct lab_recorder *recorder = &worker->recorder;
    const struct lab_sizes *sizes =
        lab_sizes_create(LAB_UNIFORM, settings->size_min, settings->size_max, &worker->random);
    /* A copy whose address nobody has can stay in a register. */
    struct lab_random random = worker->random;
    uint64_t live = settings->working_set;
    uint64_t allocations = lab_share(worker, settings->operations / 2);
    struct lab_block *slots = lab_reserve(live * sizeof *slots);

    lab_clock_start(worker);
    for (uint64_t i = 0; i < live; i++) {
        allocate(recorder, &slots[i], lab_sizes_at(sizes, i), (uint32_t)i);
    }
    for (uint64_t i = live; i < allocations; i++) {
        uint64_t draw = lab_random_next(&random);
        struct lab_block *slot = &slots[lab_below(draw, live)];
        release(recorder, slot);
        allocate(recorder, slot, lab_sizes_at(sizes, i), (uint32_t)draw);
    }
    for (uint64_t i = 0; i < live; i++) {
        release(recorder, &slots[i]);
    }
    lab_clock_stop(worker);

    recorder->operations += 2 * allocations;
    lab_count_draws(recorder, sizes, 0, allocations);
    lab_release(slots, live * sizeof *slots);
}

#endif
