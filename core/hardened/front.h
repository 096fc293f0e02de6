/* malloc and free of the hardened library: memory that reads as zero when it is handed out, a
 * canary behind it, and a word that says how it was requested. If something is not as it was left,
 * the program ends.
 *
 *     free    word: live -> freed | end and canary whole? | zeros | the thread's hold
 *     malloc  the thread's hold | all zero? | canary | word: live
 *
 * Blocks lie in slabs of the first shard, which no class map knows. A thread's hold (hold.h) serves
 * malloc and free without a lock. If it cannot, for large blocks and in a signal handler that has
 * interrupted it, they take the slow path, inside the heap. So do samples
 * (trace/sample.h), which are large blocks whatever their size.
 *
 * No lock of its own: the thread that changes the word owns the block.
 */
#ifndef HARDENED_FRONT_H
#define HARDENED_FRONT_H

#include "api/block.h"
#include "hardened/word.h"
#include "hardened/zero_size.h"
#include "thread/heap.h"

struct trace_start;

/* The shard whose bins have all slabs, and the page heap's part with their units. */
enum { HARDENED_SHARD = 0 };

/* Finds the block of a pointer of the program, which may have a tag; no block of no bytes
 * (zero_size.h). */
struct block_info front_find(const void *pointer);

/* The class for a request; CLASS_NONE: it has to be a big block. */
unsigned front_class_for(size_t size, size_t alignment);

/* A block for a request that was shorter, in a class that it can grow in, or NULL. */
void *front_alloc_roomy(size_t before, size_t size, const struct trace_start *start);

/* The word of a live block. Aborts, naming `call`, if the block is not live, if a function of that
 * kind may not free it, or if somebody wrote beside it. */
uint32_t front_word_of(struct slab *slab, const void *block, enum form form, const char *call);

/* Aborts with the reason why the block, which had that word, cannot be freed. */
_Noreturn SLOW_PATH void front_refuse(
    struct slab *slab, const void *block, uint32_t word, enum form form, const char *call);

/* ---- Forms ----------------------------------------------------------------------------------- */

/* Aborts, naming `call`, if a function of that kind may not free the live block, whose word is
 * that. */
SLOW_PATH void form_check(const void *block, uint32_t word, enum form form, const char *call);

/* True if a function of another kind made the live block, but of a kind that an operator of another
 * library (operators.h) may have called, or that may have been called in place of one. */
SLOW_PATH bool form_is_excused(uint32_t word, enum form form);

/* The word of a big block of `size` bytes with that alignment and form. Its own size is what the
 * block is longer: one byte, if none was asked for. */
uint32_t form_of_big(size_t size, size_t alignment, enum form form);

#endif
