/* The loops of random-mixed, mid-large and fresh-process: a set of slots, of which a random one
 * changes at every step.
 *
 *     replace   the block of the slot goes, another one takes its place: the set stays full
 *     toggle    the block of the slot goes, or one comes if the slot is empty: half of the slots
 *               are full, and frees come in runs as well as allocations
 *
 * This is where allocators of 3 to 7 ns per call are compared, so the loops themselves have to be
 * lean: one random number for the slot and the tag, one load for the size. */
#ifndef REPLACE_H
#define REPLACE_H

#include "lab.h"

enum replace_step { REPLACE, TOGGLE };

struct replace_settings {
    uint64_t operations, threads, working_set, step, size_min, size_max;
};

static const char *const replace_steps[] = {"replace", "toggle", NULL};

/* The row of the table of flags that goes with the loops. */
#define REPLACE_STEP(where)                                                                        \
    {                                                                                              \
        .name = "step", .kind = LAB_CHOICE, .variable = (where), .standard = REPLACE,              \
        .choices = replace_steps,                                                                  \
        .help = "what happens to a slot: its block is replaced, or freed if it has one and "       \
                "allocated if not"                                                                 \
    }

static inline void replace_check(const struct replace_settings *settings)
{
    lab_require_operations(
        settings->operations, 2 * settings->working_set * settings->threads,
        "to allocate and free the working set of all threads");
}

typedef void replace_allocate(
    struct lab_recorder *recorder, struct lab_block *block, uint32_t size, uint32_t tag);
typedef void replace_free(struct lab_recorder *recorder, const struct lab_block *block);

/* What the loops work on. */
struct replace_set {
    struct lab_recorder *recorder;
    const struct lab_sizes *sizes;
    struct lab_block *slots;
    uint64_t live; /* slots */
};

/* Makes `allocations` blocks, and frees as many. */
static inline __attribute__((always_inline)) uint64_t replace_steadily(
    const struct replace_set *set, struct lab_random random, uint64_t allocations,
    replace_allocate *allocate, replace_free *release)
{
    for (uint64_t i = 0; i < set->live; i++) {
        allocate(set->recorder, &set->slots[i], lab_sizes_at(set->sizes, i), (uint32_t)i);
    }
    for (uint64_t i = set->live; i < allocations; i++) {
        uint64_t draw = lab_random_next(&random);
        struct lab_block *slot = &set->slots[lab_below(draw, set->live)];
        release(set->recorder, slot);
        allocate(set->recorder, slot, lab_sizes_at(set->sizes, i), (uint32_t)draw);
    }
    for (uint64_t i = 0; i < set->live; i++) {
        release(set->recorder, &set->slots[i]);
    }
    return allocations;
}

/* Takes `steps` steps, and empties the slots that are full then. Returns how many blocks it made.
 */
static inline __attribute__((always_inline)) uint64_t replace_by_turns(
    const struct replace_set *set, struct lab_random random, uint64_t steps,
    replace_allocate *allocate, replace_free *release)
{
    uint64_t allocations = 0;
    for (uint64_t i = 0; i < steps; i++) {
        uint64_t draw = lab_random_next(&random);
        struct lab_block *slot = &set->slots[lab_below(draw, set->live)];
        if (slot->address) {
            release(set->recorder, slot);
            slot->address = NULL;
        } else {
            uint32_t size = lab_sizes_at(set->sizes, allocations++);
            allocate(set->recorder, slot, size, (uint32_t)draw);
        }
    }
    for (uint64_t i = 0; i < set->live; i++) {
        if (set->slots[i].address) {
            release(set->recorder, &set->slots[i]);
        }
    }
    return allocations;
}

/* `allocate` and `release` are constants of the caller, so that they are inlined. */
static inline __attribute__((always_inline)) void replace_work(
    struct lab_worker *worker, const struct replace_settings *settings,
    const struct lab_sizes *sizes, replace_allocate *allocate, replace_free *release)
{
    uint64_t operations = lab_share(worker, settings->operations / 2) * 2;
    struct replace_set set = {
        .recorder = &worker->recorder,
        .sizes = sizes,
        .slots = lab_reserve(settings->working_set * sizeof *set.slots),
        .live = settings->working_set,
    };

    lab_clock_start(worker);
    uint64_t allocations =
        settings->step == TOGGLE
            ? replace_by_turns(&set, worker->random, operations, allocate, release)
            : replace_steadily(&set, worker->random, operations / 2, allocate, release);
    lab_clock_stop(worker);

    worker->recorder.operations += 2 * allocations;
    lab_count_draws(&worker->recorder, sizes, 0, allocations);
    lab_release(set.slots, set.live * sizeof *set.slots);
}

#endif
