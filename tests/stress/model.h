/* The model of one block, and the budget of live bytes.
 *
 * Thread rule: called by the thread on the seat, for blocks in slots it holds. */
#ifndef STRESS_MODEL_H
#define STRESS_MODEL_H

#include "stress.h"

#define UNLIKELY(condition) __builtin_expect((condition), 0)

/* behaviour 16: 16 is promised whatever was asked for. */
static inline size_t model_alignment(const struct block *block)
{
    return (size_t)1 << (block->align_log2 > 4 ? block->align_log2 : 4);
}

/* behaviours 14 and 15: errno is as it was. */
static inline void model_check_errno(
    const struct seat *seat, enum operation operation, const struct block *block)
{
    if (UNLIKELY(*seat->errno_place != ERRNO_MARK))
        report_failure(
            seat, operation, block, "errno changed by a success: it is %d now", *seat->errno_place);
}

/* Checks what an allocating call returned and makes it the live block of `slot`, up to but not
 * including its contents. The slot's size, alignment and origin are set already. */
void model_admit(struct seat *seat, struct block *slot, void *address);

/* Gives the block a pattern of its own and writes it. */
void model_fill(struct seat *seat, struct block *slot);

/* Verifies a block that ends or moves, and takes it out of the shadow. */
void model_retire(struct seat *seat, enum operation operation, const struct block *block);

/* Takes a block back into the shadow after a call that left it as it was, and verifies that. */
void model_readmit(struct seat *seat, enum operation operation, const struct block *block);

/* Takes `bytes` from the seat's lease, which is renewed from the run's budget when it is short. */
static inline bool budget_take(struct seat *seat, uint64_t bytes)
{
    struct run *run = seat->run;

    if (UNLIKELY(seat->lease < bytes)) {
        int64_t want = (int64_t)(bytes + run->lease_bytes);
        int64_t left = atomic_fetch_sub_explicit(&run->unleased, want, memory_order_relaxed) - want;

        if (left < 0) {
            atomic_fetch_add_explicit(&run->unleased, want, memory_order_relaxed);
            return false;
        }
        if (left < atomic_load_explicit(&run->unleased_low, memory_order_relaxed))
            atomic_store_explicit(&run->unleased_low, left, memory_order_relaxed);
        seat->lease += (uint64_t)want;
    }
    seat->lease -= bytes;
    return true;
}

static inline void budget_return(struct seat *seat, uint64_t bytes)
{
    struct run *run = seat->run;

    seat->lease += bytes;
    if (UNLIKELY(seat->lease > 4 * run->lease_bytes)) {
        uint64_t surplus = seat->lease - run->lease_bytes;

        seat->lease -= surplus;
        atomic_fetch_add_explicit(&run->unleased, (int64_t)surplus, memory_order_relaxed);
    }
}

#endif
