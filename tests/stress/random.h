/* The random numbers of the stress: a xorshift generator, and the draws of sizes and alignments.
 *
 * All draws are made of shifts, masks and multiplications: a division costs as much as the fast
 * path of the allocator under test. One 64-bit draw is cut into several small decisions. */
#ifndef STRESS_RANDOM_H
#define STRESS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

enum {
    SIZE_MAX_LOG2 = 26, /* largest request: 64 MiB */
    TINY_MAX_LOG2 = 10, /* the bands of sizes follow the tiers of the library */
    MID_MAX_LOG2 = 15,
    LARGE_MAX_LOG2 = 21,
    ALIGN_MIN_LOG2 = 3,    /* alignments: 8 bytes ... */
    ALIGN_USUAL_LOG2 = 12, /* ... nearly always up to a page ... */
    ALIGN_MAX_LOG2 = 20    /* ... rarely up to 1 MiB */
};

/* The state must not be 0. */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x * 0x2545F4914F6CDD1DULL;
}

/* Turns neighbouring numbers into unrelated, non-zero states. */
static inline uint64_t random_seeded(uint64_t number)
{
    uint64_t z = number + 0x9E3779B97F4A7C15ULL;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    return z != 0 ? z : 1;
}

/* A number in [0, limit) from 16 random bits. */
static inline unsigned random_below(unsigned bits16, unsigned limit)
{
    return ((bits16 & 0xffff) * limit) >> 16;
}

/* A size in [2^low, 2^high]: all octaves equally likely; one draw in eight is within 1 of a power
 * of two and one in eight within 1 of a multiple of 16, where size classes begin and end. */
static inline size_t random_size_between(uint64_t draw, unsigned low, unsigned high)
{
    unsigned octave = low + random_below((unsigned)draw, high - low);
    size_t size = ((size_t)1 << octave) + ((draw >> 32) & (((size_t)1 << octave) - 1));
    unsigned kind = (draw >> 16) & 7;
    size_t offset = (draw >> 20) & 3; /* 0, 1, 2 or 3: becomes -1, 0, 1, 0 */

    if (kind == 0)
        size = ((size_t)2 << octave) - 1 + (offset & 1) * 2 + (offset == 2);
    else if (kind == 1)
        size = (size & ~(size_t)15) - 1 + (offset == 3 ? 1 : offset) + (size < 16 ? 16 : 0);
    return size;
}

/* A size from 0 to 64 MiB, logarithmically uniform within each tier. How often a tier is drawn is
 * chosen so that touching every page of the rare large blocks costs about as much time in all as
 * serving the many small ones. */
static inline size_t random_size(uint64_t *state)
{
    uint64_t draw = random_next(state);
    uint64_t band = random_next(state) >> 44; /* 20 bits */
    size_t size;

    if (band < 945000)
        size = random_size_between(draw, 0, TINY_MAX_LOG2); /* 90.1% */
    else if (band < 1044300)
        size = random_size_between(draw, TINY_MAX_LOG2, MID_MAX_LOG2); /* 9.5% */
    else if (band < 1048300)
        size = random_size_between(draw, MID_MAX_LOG2, LARGE_MAX_LOG2); /* 0.38% */
    else if (band < 1048350)
        size = random_size_between(draw, LARGE_MAX_LOG2, SIZE_MAX_LOG2); /* 0.005% */
    else
        size = 0; /* 0.02% */
    return size <= ((size_t)1 << SIZE_MAX_LOG2) ? size : (size_t)1 << SIZE_MAX_LOG2;
}

/* log2 of an alignment: small ones more often; above a page in one draw of 128. */
static inline unsigned random_align_log2(uint64_t draw)
{
    unsigned span = ALIGN_USUAL_LOG2 - ALIGN_MIN_LOG2 + 1;
    unsigned first = random_below((unsigned)draw, span);
    unsigned second = random_below((unsigned)(draw >> 16), span);

    if (((draw >> 32) & 127) == 0)
        return ALIGN_USUAL_LOG2 + 1 +
               random_below((unsigned)(draw >> 40), ALIGN_MAX_LOG2 - ALIGN_USUAL_LOG2);
    return ALIGN_MIN_LOG2 + (first < second ? first : second);
}

#endif
