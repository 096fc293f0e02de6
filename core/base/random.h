/* Numbers that are hard to foresee, but no good for secrets: splitmix64. Each user keeps its own
 * state, a word that begins with randomness of the system. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include "base/macros.h"

ALWAYS_INLINE uint64_t random_next(uint64_t *state)
{
    uint64_t bits = *state += 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

/* A number below `bound`. */
ALWAYS_INLINE uint32_t random_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)((random_next(state) >> 32) * bound >> 32);
}

#endif
