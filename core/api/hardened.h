/* Blocks of the hardened preset: memory that reads as zero when it is handed out, a canary behind
 * it, and a word that tells how it was asked for; and a stop where something is not as it was left.
 *
 * They lie in slabs of a shard of their own, which no class map knows, so that every free of one
 * leaves the hit path; and while the preset is on the heaps stay parked, so that every malloc does.
 * The hit paths know nothing of it. What was handed out before the option was read lies in ordinary
 * slabs and keeps their rules.
 *
 *     free    word: live -> freed | end and canary whole? | zeros | what the thread holds
 *     malloc  what the thread holds | all zero? | canary | word: live
 *
 * What a thread holds (thread/hold.h) serves both without a lock. Where it cannot, for large blocks
 * and in a signal handler that has interrupted it, they go the slow way, inside the heap. So do
 * samples (profile/sample.h), which are large blocks whatever their size.
 *
 * No lock of its own: who changes the word has the block.
 */
#ifndef API_HARDENED_H
#define API_HARDENED_H

#include "slab/word.h"
#include "span/big_cache.h"
#include "thread/heap.h"

/* Turns the preset on for the rest of the program, as the option says; without memory for it, it
 * stays off. By the constructor. */
void hardened_start(void);

ALWAYS_INLINE bool hardened_is_on(void)
{
    return UNLIKELY(ATOMIC_LOAD_RELAXED(&slab_hardened_shard) != 0);
}

/* A zeroed block of at least `size` bytes at a multiple of `alignment`, a power of two, made by
 * that kind of function. NULL and ENOMEM when there is no memory. */
void *hardened_alloc(size_t size, size_t alignment, enum form form);

/* Frees a block that a function of that kind got, whatever it is, NULL too. */
void hardened_free(void *pointer, enum form form);

/* The same of a block that is known to lie in the slab; of the slow path of free. */
void hardened_free_slow(struct slab *slab, void *pointer, enum form form);

/* realloc, of a live block of a hardened slab. */
void *hardened_resize(struct slab *slab, void *block, size_t size);

/* The same where there is no memory to move it: the block, which is long enough, stays. */
void hardened_shorten(struct slab *slab, void *block, size_t size);

/* Bytes that were asked for. Aborts, naming `call`, when no live block starts there, or somebody
 * wrote beyond its end. Any thread. */
size_t hardened_size(struct slab *slab, const void *block, const char *call);

/* To be called before a block is freed by a function that is told more than where it is. Aborts
 * when it was asked for with another size, SIZE_MAX: not told, or alignment, 0: not told. Of what
 * is no live block of the preset free will find out. */
SLOW_PATH void hardened_expect(const void *block, size_t size, size_t alignment, const char *call);

/* An address for no bytes, NULL when all are taken; and back, of one that is taken. Inside the
 * heap, NULL: it has none. */
void *hardened_take_nothing(struct heap *heap, size_t alignment, enum form form);
void hardened_free_nothing(struct heap *heap, void *nothing, enum form form);

/* Aborts, naming `call`, where a function of that kind may not free the live block, whose word is
 * that. */
SLOW_PATH void hardened_check_form(
    const void *block, uint32_t word, enum form form, const char *call);

/* A big block that was just made, in the preset, is of that alignment and kind. */
void hardened_start_big(const void *block, size_t alignment, enum form form);

/* Aborts, naming `call`, when a function of that kind may not free the big block. */
void hardened_look_at_big(
    const struct big *big, const void *block, enum form form, const char *call);

/* Sends home what the thread holds, and looks at it. */
void hardened_flush(void);

/* The same, and ends all waiting in limbo: for who is out of memory. To be called without locks. */
void hardened_release(void);

/* Looks at all that waits, at the end of the program. */
void hardened_stop(void);

#endif
