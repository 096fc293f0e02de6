/* One call of the API on one slot, checked against the model.
 *
 * What is called, and with which arguments, is the caller's choice: worker.c draws it at random,
 * a fuzzer reads it from its input. The caller has taken the size from the budget; it is given
 * back here when the block ends, or when it could not be had.
 *
 * Thread rule: called by the thread on the seat, for blocks in slots it holds. */
#ifndef STRESS_PERFORM_H
#define STRESS_PERFORM_H

#include "stress.h"

struct request {
    size_t size;
    unsigned split_log2; /* calloc, reallocarray: log2 of the element, if the size is divisible */
    unsigned align_log2; /* for the calls that take an alignment */
    bool odd_align;      /* memalign is given three quarters of the alignment */
    bool zero;           /* jemalloc's calls: what is new has to be zero */
    size_t extra;        /* xallocx: bytes that are welcome besides */
};

/* Fills the empty slot by one of the calls that allocate (realloc of NULL is one of them). The
 * slot stays empty only when the system refused memory during the call: see seat.refusals. */
void perform_allocate(
    struct seat *seat, struct block *slot, enum operation operation, const struct request *request);

/* Resizes the block in the slot by OP_REALLOC, OP_REALLOCARRAY or OP_RALLOCX. */
void perform_resize(
    struct seat *seat, struct block *slot, enum operation operation, const struct request *request);

/* Resizes the block in the slot where it is, if that can be: OP_XALLOCX. */
void perform_resize_in_place(struct seat *seat, struct block *slot, const struct request *request);

/* Frees the block in the slot; `sized`: by the sized form that belongs to how it was allocated. */
void perform_release(struct seat *seat, struct block *slot, bool sized);

/* Asks for the usable size. */
void perform_ask(struct seat *seat, const struct block *slot);

/* OP_TRIM, OP_PURGE or OP_FLUSH. */
void perform_upkeep(struct seat *seat, enum operation operation);

#endif
