/* Bit arithmetic and bitmaps of 64-bit words, bit 0 of word 0 first. */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include "base/macros.h"

ALWAYS_INLINE unsigned bits_lowest(uint64_t word)
{
    return (unsigned)__builtin_ctzll(word);
}

ALWAYS_INLINE unsigned bits_highest(uint64_t word)
{
    return 63 - (unsigned)__builtin_clzll(word);
}

static inline unsigned bits_count(uint64_t word)
{
    /* Not __builtin_popcountll: without the POPCNT instruction it is a libgcc call by table. */
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (unsigned)((word * 0x0101010101010101u) >> 56);
}

ALWAYS_INLINE bool bitmap_test(const uint64_t *map, unsigned bit)
{
    return (map[bit / 64] >> (bit % 64)) & 1;
}

ALWAYS_INLINE void bitmap_set(uint64_t *map, unsigned bit)
{
    map[bit / 64] |= (uint64_t)1 << (bit % 64);
}

ALWAYS_INLINE void bitmap_clear(uint64_t *map, unsigned bit)
{
    map[bit / 64] &= ~((uint64_t)1 << (bit % 64));
}

/* The bits of word `word` that lie in [first, first + count). */
static inline uint64_t bitmap_word_mask(unsigned word, unsigned first, unsigned count)
{
    unsigned low = word * 64, high = low + 64, end = first + count;
    uint64_t mask = ~(uint64_t)0;
    if (first > low)
        mask &= ~(uint64_t)0 << (first - low);
    if (end < high)
        mask &= ~(uint64_t)0 >> (high - end);
    return mask;
}

static inline void bitmap_set_range(uint64_t *map, unsigned first, unsigned count)
{
    for (unsigned w = first / 64; w <= (first + count - 1) / 64; w++)
        map[w] |= bitmap_word_mask(w, first, count);
}

static inline unsigned bitmap_count_range(const uint64_t *map, unsigned first, unsigned count)
{
    unsigned total = 0;
    for (unsigned w = first / 64; w <= (first + count - 1) / 64; w++)
        total += bits_count(map[w] & bitmap_word_mask(w, first, count));
    return total;
}

/* First set (or clear) bit at or after `from` and below `limit`; `limit` when there is none. */
static inline unsigned bitmap_find(const uint64_t *map, unsigned from, unsigned limit, bool set)
{
    uint64_t flip = set ? 0 : ~(uint64_t)0;
    for (unsigned w = from / 64; w * 64 < limit; w++) {
        uint64_t word = map[w] ^ flip;
        if (w == from / 64)
            word &= ~(uint64_t)0 << (from % 64);
        if (word) {
            unsigned bit = w * 64 + bits_lowest(word);
            return bit < limit ? bit : limit;
        }
    }
    return limit;
}

#endif
