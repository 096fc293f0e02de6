/* Blocks of the hardened preset: memory that reads as zero when it is handed out, and a stop where
 * it does not, since somebody has written to it after its free.
 *
 * They lie in slabs of a shard of their own, which no class map knows, so that every free of one
 * takes a slow path; and while the preset is on the heaps stay parked, so that every malloc does.
 * The hit paths know nothing of it. What was handed out before the option was read lies in ordinary
 * slabs and keeps their rules. The record of a slab has a bit for each block, which says whether
 * it is live.
 *
 *     free    the bit -> zeroes -> a random place -> a queue -> all zero? -> the bin
 *     malloc  the bin -> all zero? -> the bit
 *
 * No lock of its own: who changes the bit has the block. The quarantine is its thread's; a signal
 * handler that interrupts a slow path goes around it.
 */
#ifndef API_HARDENED_H
#define API_HARDENED_H

#include "slab/slab.h"
#include "thread/heap.h"

/* Turns the preset on for the rest of the program, as the option says; without memory for it, it
 * stays off. By the constructor. */
void hardened_start(void);

ALWAYS_INLINE bool hardened_is_on(void)
{
    return ATOMIC_LOAD_RELAXED(&slab_hardened_shard) != 0;
}

/* A zeroed block of the class, or, where that is CLASS_NONE, one of whole units at a multiple of
 * `alignment`, both at most LARGE_MAX. NULL: no memory. Inside the heap. */
void *hardened_take(struct heap *heap, unsigned size_class, size_t size, size_t alignment);

/* Aborts, naming `call`, when the start of a block that is this is not one of a live block. */
void hardened_check(struct slab *slab, const void *block, const char *call);

/* Frees the block; aborts as that. `heap`: NULL if the thread could not have one. */
void hardened_free(struct heap *heap, struct slab *slab, void *block);

/* An address for no bytes, NULL when all are taken; and back. As those two. */
void *hardened_take_nothing(struct heap *heap);
void hardened_free_nothing(struct heap *heap, void *nothing);

/* What a block loses that is made shorter in place is zero from now on. */
void hardened_cut(void *block, size_t size, size_t usable);

/* Sends home what waits in the thread's quarantine, and looks at it. */
void hardened_flush(struct heap *heap);

#endif
