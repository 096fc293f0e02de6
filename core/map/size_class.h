/* Size classes of the slab tiers: which block size serves a request, and how its slabs are cut.
 *
 * Classes are 16 bytes apart up to 256 bytes and then eight to the doubling, so that rounding up
 * wastes at most one ninth. Class 0 stands for "no slab": the class map reads it
 * wherever no slab is, and its magazine is always empty and always full.
 *
 *     tiny    16, 32 .. 256 | 288 .. 512 | 576 .. 1024          table in steps of 16 bytes
 *     mid     1152 .. 2048 | .. 4096 | .. 8192 | .. 16384 | .. 32768    in steps of 128 bytes
 */
#ifndef MAP_SIZE_CLASS_H
#define MAP_SIZE_CLASS_H

#include "base/bits.h"

/* A slab is one, two or four units, and starts at a multiple of the unit. */
#define UNIT_SHIFT 16
#define UNIT_SIZE ((size_t)1 << UNIT_SHIFT)

#define TINY_MAX ((size_t)1024)
#define MID_MAX ((size_t)32768)
#define TINY_STEP 16
#define MID_STEP 128

/* Every block is aligned to this, as the ABI asks of malloc. */
#define MIN_ALIGNMENT 16

enum {
    CLASS_NONE = 0,
    SIZE_COUNT = 72,                      /* classes 1 .. 72 have different sizes */
    TWINS = 3,                            /* of the first classes, smaller than a cache line */
    CLASS_COUNT = 1 + SIZE_COUNT + TWINS, /* the twins come last */
    TINY_CLASS_LAST = 32,
    LONG_CLASS_FIRST = 49 /* of blocks longer than a page */
};

/* Two threads that write to neighbouring blocks in one cache line slow each other down, so a thread
 * should not get such blocks of another. For this the classes smaller than a line exist twice, for
 * the even shards and for the odd ones: no magazine or transfer cache mixes them. */
ALWAYS_INLINE unsigned size_class_for_shard(unsigned class, unsigned shard)
{
    return class <= TWINS && shard % 2 ? class + SIZE_COUNT : class;
}

/* Fresh blocks of these classes are taken one at a time, when no other block serves: each costs
 * pages. */
ALWAYS_INLINE bool size_class_is_long(unsigned class)
{
    return class >= LONG_CLASS_FIRST && class <= SIZE_COUNT;
}

struct size_class {
    uint32_t size;       /* bytes of a block */
    uint16_t blocks;     /* blocks in a slab */
    uint16_t units;      /* units of a slab */
    uint64_t reciprocal; /* 2^RECIPROCAL_SHIFT / size, rounded up: divides by multiplying */
    uint64_t inverse;    /* of the odd part of the size, modulo 2^64: see size_class_exact_index */
};

/* Exact for offsets below 4 units: the error of the rounding is below 2^18 * 1, which must stay
 * below 2^44 / 32768. */
#define RECIPROCAL_SHIFT 44

extern const struct size_class size_classes[CLASS_COUNT];

/* Class of a tiny size by (size + 15) / 16, of a mid size by (size - 1) / 128. Entry 0 of the tiny
 * table serves malloc(0). */
extern const uint8_t tiny_class_table[TINY_MAX / TINY_STEP + 1];
extern const uint8_t mid_class_table[MID_MAX / MID_STEP];

/* Class that serves `size` <= MID_MAX bytes. */
ALWAYS_INLINE unsigned size_class_of(size_t size)
{
    if (size <= TINY_MAX)
        return tiny_class_table[(size + TINY_STEP - 1) / TINY_STEP];
    return mid_class_table[(size - 1) / MID_STEP];
}

/* Smallest class that serves `size` bytes at a multiple of `alignment`; CLASS_NONE: none does.
 * Blocks lie at multiples of their size from the start of a unit. */
unsigned size_class_aligned(size_t size, size_t alignment);

/* Index of the block that holds byte `offset` of a slab of class `class`. */
ALWAYS_INLINE unsigned size_class_index(unsigned class, size_t offset)
{
    return (unsigned)((offset * size_classes[class].reciprocal) >> RECIPROCAL_SHIFT);
}

/* Index of the block that starts at the offset; where none does, more than any slab has blocks. For
 * a multiple of an odd number the product with its inverse is the quotient, and all others have
 * greater ones. The power of two in the size goes by a rotation, which makes what is no multiple of
 * it great. */
ALWAYS_INLINE size_t size_class_exact_index(const struct size_class *layout, size_t offset)
{
    unsigned shift = bits_lowest(layout->size);
    uint64_t product = offset * layout->inverse;
    return product >> shift | product << (64 - shift);
}

/* Whether block `index`, which holds byte `offset` of a slab of the class, exists and starts there.
 */
ALWAYS_INLINE bool size_class_is_start(unsigned class, unsigned index, size_t offset)
{
    const struct size_class *kind = &size_classes[class];
    return index * (size_t)kind->size == offset && index < kind->blocks;
}

/* Whether a block starts at the address, which lies in a slab of the class: that starts at a
 * multiple of its size, so arithmetic tells. */
ALWAYS_INLINE bool size_class_starts_at(unsigned class, const void *address)
{
    size_t offset = (uintptr_t)address & (size_classes[class].units * UNIT_SIZE - 1);
    return size_class_exact_index(&size_classes[class], offset) < size_classes[class].blocks;
}

#endif
