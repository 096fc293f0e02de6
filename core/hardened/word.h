/* The record of each block of the hardened library (its word), and the canary behind the block.
 *
 * The record of a slab has a word for each block, a secret, from which the canaries follow, and the
 * state of a generator, by which blocks are taken (slab_take), or, in the slab of a large block
 * (large.h), the block's sample:
 *
 *     record   | struct slab | bitmap | secret | random | word 0 | word 1 | ...
 *     word     | bytes asked for: 22 | log2 of the alignment: 5 | form: 2 | state: 2 |
 *              of a freed block: | the tag that its memory had last: 4 | state: 2 |
 *     block    | bytes asked for ... | zeros | canary: 8 bytes |
 *
 * Free blocks are all zero, and so is a live one behind the requested bytes, but for the canary. A
 * canary begins with a zero, so that no string runs into it; the other seven bytes are a hash of
 * its block's address with the secret.
 *
 * Words are atomic: the thread that changes one from live to freed has freed the block; the owner
 * of a block sets it live.
 */
#ifndef HARDENED_WORD_H
#define HARDENED_WORD_H

#include "hardened/bytes.h"
#include "hardened/large.h"
#include "hardened/tags.h"
#include "os/fatal.h"

enum word_state { WORD_UNUSED, WORD_LIVE, WORD_FREED };

enum {
    WORD_FORM_SHIFT = 2,
    WORD_ALIGNMENT_SHIFT = 4,
    WORD_SIZE_SHIFT = 9,
    WORD_STATE_MASK = (1 << WORD_FORM_SHIFT) - 1,
    WORD_FORM_MASK = (1 << WORD_ALIGNMENT_SHIFT) - 1, /* and the state */
    WORD_ALIGNMENT_MASK = (1 << WORD_SIZE_SHIFT) - 1, /* and those */
    CANARY_SIZE = 8
};

ALWAYS_INLINE uint32_t word_live(size_t size, size_t alignment, enum form form)
{
    return (uint32_t)size << WORD_SIZE_SHIFT | bits_lowest(alignment) << WORD_ALIGNMENT_SHIFT |
           (uint32_t)form << WORD_FORM_SHIFT | WORD_LIVE;
}

/* The word of a freed block, with the tag that its pointer had; and that tag. */
ALWAYS_INLINE uint32_t word_freed(const void *pointer)
{
    return tags_of(pointer) << WORD_FORM_SHIFT | WORD_FREED;
}

ALWAYS_INLINE unsigned word_last_tag(uint32_t word)
{
    return word >> WORD_FORM_SHIFT & 15;
}

ALWAYS_INLINE enum word_state word_state(uint32_t word)
{
    return (enum word_state)(word & WORD_STATE_MASK);
}

ALWAYS_INLINE enum form word_form(uint32_t word)
{
    return (enum form)(word >> WORD_FORM_SHIFT & 3);
}

ALWAYS_INLINE size_t word_alignment(uint32_t word)
{
    return (size_t)1 << (word >> WORD_ALIGNMENT_SHIFT & 31);
}

ALWAYS_INLINE size_t word_size(uint32_t word)
{
    return word >> WORD_SIZE_SHIFT;
}

/* Whether the block is live, and a function of that kind may free it. An operator delete without an
 * alignment may free blocks of the least alignment only. */
ALWAYS_INLINE bool word_fits(uint32_t word, enum form form)
{
    static const uint16_t masks[] = {
        [FORM_MALLOC] = WORD_FORM_MASK,
        [FORM_NEW] = WORD_ALIGNMENT_MASK,
        [FORM_NEW_ARRAY] = WORD_ALIGNMENT_MASK,
        [FORM_ANY] = WORD_STATE_MASK,
        [FORM_NEW | FORM_ALIGNED] = WORD_FORM_MASK,
        [FORM_NEW_ARRAY | FORM_ALIGNED] = WORD_FORM_MASK};
    return ((word ^ word_live(0, MIN_ALIGNMENT, form & FORM_ANY)) & masks[form]) == 0;
}

/* Large blocks have slabs of their own (large.h), and no canaries, which would cost a page each. */
ALWAYS_INLINE bool word_is_large(const struct slab *slab)
{
    return size_class_is_large(slab->size_class);
}

/* Const after the slab was made, except in slabs of large blocks (large.c). */
ALWAYS_INLINE uint64_t *slab_secret(struct slab *slab)
{
    return &slab->free[(slab->blocks + 63u) / 64];
}

/* Const in a process. A child of fork has another one, and the states of the slabs' generators,
 * with which it is mixed, need not be drawn anew. */
extern uint64_t random_of_process;

/* The bin's lock; in the slab of a large block it is word_sample. */
ALWAYS_INLINE uint64_t *slab_random(struct slab *slab)
{
    return slab_secret(slab) + 1;
}

ALWAYS_INLINE uint32_t *slab_word(struct slab *slab, unsigned index)
{
    return (uint32_t *)(slab_secret(slab) + 2) + index;
}

/* The sample (trace/) of a live large block, or NULL. It takes the place of the generator, which
 * one block does not need. Atomic, owner of the block. */
ALWAYS_INLINE void *word_sample(struct slab *slab)
{
    return word_is_large(slab) ? (void *)(uintptr_t)ATOMIC_LOAD_ACQUIRE(slab_random(slab)) : NULL;
}

/* Sets it; returns the former value. */
ALWAYS_INLINE void *word_set_sample(struct slab *slab, const void *sample)
{
    return (void *)(uintptr_t)__atomic_exchange_n(
        slab_random(slab), (uintptr_t)sample, __ATOMIC_ACQ_REL);
}

/* Requested bytes of the block of that index if it is live; else its length. */
ALWAYS_INLINE size_t word_asked(const struct slab *slab, unsigned index)
{
    uint32_t word = ATOMIC_LOAD_RELAXED(slab_word((struct slab *)slab, index));
    return word_state(word) == WORD_LIVE ? word_size(word) : size_classes[slab->size_class].size;
}

/* For a new slab: if the system has nothing random yet, from the time and its address. */
void word_draw_secrets(struct slab *slab);

/* The number of the block that starts at the pointer, with or without a tag; slab->blocks or more:
 * none. */
ALWAYS_INLINE size_t word_index(const struct slab *slab, const void *pointer)
{
    size_t offset = (size_t)((const char *)tags_strip(pointer) - slab->base);
    return size_class_exact_index(&size_classes[slab->size_class], offset);
}

/* Aborts, naming `call`, if a free block that was handed out before has been written to. Blocks
 * never handed out are not touched: most have no memory. */
ALWAYS_INLINE void word_check_zero(struct slab *slab, const void *block, const char *call)
{
    uint32_t word = ATOMIC_LOAD_RELAXED(slab_word(slab, (unsigned)word_index(slab, block)));
    if (word_state(word) != WORD_UNUSED &&
        UNLIKELY(!bytes_are_zero(block, size_classes[slab->size_class].size)))
        fatal_pointer(call, DEFECT_WRITTEN, block, NULL, 0);
}

/* Aborts if a block that is handed out for the first time has been written to, by a stray write.
 * Blocks longer than TINY_MAX are not checked. The place of the canary is not checked. */
SLOW_PATH void word_check_unused(char *block, size_t length);

/* ---- Canaries -------------------------------------------------------------------------------- */

/* The class whose blocks hold `size` bytes, MID_MAX at most, and a canary; if no tiny or mid class
 * does, a longer one, or CLASS_NONE. */
ALWAYS_INLINE unsigned word_class(size_t size, size_t alignment)
{
    size_t room = size + CANARY_SIZE;
    return LIKELY(alignment <= MIN_ALIGNMENT) ? size_class_of(room)
                                              : size_class_aligned(room, alignment);
}

/* A folded 128-bit product. An attacker who reads one canary can compute the others of that slab,
 * but of no other slab. The lowest byte is the first in memory, on every processor that hakmem
 * knows. */
ALWAYS_INLINE uint64_t word_canary(struct slab *slab, const void *block)
{
    static const uint64_t odd = 0x9e3779b97f4a7c15u;
    unsigned __int128 product = (unsigned __int128)(*slab_secret(slab) ^ (uintptr_t)block) * odd;
    uint64_t hash = (uint64_t)(product >> 64) ^ (uint64_t)product;
    return hash & ~(uint64_t)UINT8_MAX;
}

/* True if the eight bytes below the block, the canary of another block, are zero or the canary: the
 * other owner may be about to set or to clear it. The first block has none below. */
ALWAYS_INLINE bool word_start_is_whole(struct slab *slab, const void *block)
{
    if (HAKMEM_SANITIZE_THREAD || HAKMEM_SANITIZE_ADDRESS || (const char *)block == slab->base)
        return true;
    uint64_t below = ATOMIC_LOAD_RELAXED((const uint64_t *)block - 1);
    const char *neighbour = (const char *)block - size_classes[slab->size_class].size;
    return below == 0 || LIKELY(below == word_canary(slab, neighbour));
}

/* Whether the bytes behind the requested ones are as they were when the block was handed out; for a
 * large block, all bytes beside them on its pages. */
ALWAYS_INLINE bool word_end_is_whole(struct slab *slab, const void *block, size_t size)
{
    if (UNLIKELY(word_is_large(slab)))
        return large_is_whole(slab, size);
    const char *end = (const char *)block + size_classes[slab->size_class].size - CANARY_SIZE;
    return bytes_rest_is_zero((const char *)block + size, end) &&
           *(const uint64_t *)end == word_canary(slab, block);
}

#endif
