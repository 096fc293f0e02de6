/* Size classes: the block sizes that serve requests, and the layout of their slabs.
 *
 * Classes are 16 bytes apart up to 256 bytes, then eight to the doubling up to 128 KiB, so rounding
 * up wastes at most one ninth, and whole units above, in growing steps. Class 0 stands for "no
 * slab": the class map has it where no slab is, and its magazine is always empty and always full.
 *
 *     tiny    16, 32 .. 256 | 288 .. 512 | 576 .. 1024
 *     mid     1152 .. 2048 | .. 4096 | .. 8192 | .. 16384 | .. 32768
 *     large   36 .. 64 KiB | 72 .. 128 KiB | 3, 4 .. 8 units | 10 .. 16 | 20 .. 32
 *
 * The parts of a large block that a program does not touch cost addresses, but no memory.
 */
#ifndef MAP_SIZE_CLASS_H
#define MAP_SIZE_CLASS_H

#include "base/bits.h"
#include "base/tuning.h"

/* A slab is one unit or several, and starts at a multiple of the unit. */
#define UNIT_SHIFT 16
#define UNIT_SIZE ((size_t)1 << UNIT_SHIFT)

#define TINY_MAX ((size_t)1024)
#define SHORT_MAX ((size_t)4096)
#define MID_MAX ((size_t)32768)
#define LARGE_MAX (32 * UNIT_SIZE)
#define MID_STEP 128
#define LARGE_STEP 4096

/* Every block is aligned to this, as the ABI asks of malloc. */
#define MIN_ALIGNMENT 16

enum {
    CLASS_NONE = 0,
    SIZE_COUNT = 102,                     /* classes 1 .. 102 have different sizes */
    TWINS = 3,                            /* of the first classes, smaller than a cache line */
    CLASS_COUNT = 1 + SIZE_COUNT + TWINS, /* the twins come last */
    TINY_CLASS_LAST = 32,
    LONG_CLASS_FIRST = 49, /* of blocks longer than a page, the largest short size */
    MID_CLASS_LAST = 72,
    SINGLE_CLASS_FIRST = 88 /* of blocks that have a slab each */
};

/* Two threads that write to neighbouring blocks in one cache line slow each other down, so a thread
 * should not get such blocks of another. Hence the classes smaller than a line exist twice, for
 * even shards and for odd ones: no magazine or transfer cache mixes them. */
ALWAYS_INLINE unsigned size_class_for_shard(unsigned size_class, unsigned shard)
{
    return size_class <= TWINS && shard % 2 ? size_class + SIZE_COUNT : size_class;
}

/* Classes of blocks longer than a page. Each block has a state elsewhere (span/superslab.h):
 * writing to it at free would cost a page if the program has touched none. Fresh blocks are taken
 * one at a time, if no other block serves: each costs pages. */
ALWAYS_INLINE bool size_class_is_long(unsigned size_class)
{
    return size_class >= LONG_CLASS_FIRST && size_class <= SIZE_COUNT;
}

ALWAYS_INLINE bool size_class_is_large(unsigned size_class)
{
    return size_class > MID_CLASS_LAST && size_class <= SIZE_COUNT;
}

/* The blocks of these classes have a slab each, which can change its length. */
ALWAYS_INLINE bool size_class_is_single(unsigned size_class)
{
    return size_class >= SINGLE_CLASS_FIRST && size_class <= SIZE_COUNT;
}

struct size_class {
    uint32_t size;       /* bytes of a block */
    uint16_t blocks;     /* blocks in a slab */
    uint8_t units;       /* units of a slab */
    uint8_t alignment;   /* units: slabs start at a multiple of it, a power of two */
    uint64_t reciprocal; /* 2^RECIPROCAL_SHIFT / size, rounded up: divides by multiplying */
    uint64_t inverse;    /* of the odd part of the size, modulo 2^64: see size_class_exact_index */
};

/* Exact where the offset times the size is below 2^44: the rounding adds less than the offset times
 * 2^-44, which must stay below 1 / size. The longest slab has 2^21 bytes, in one block. */
#define RECIPROCAL_SHIFT 44

extern const struct size_class size_classes[CLASS_COUNT];

/* Class that serves `size` <= LARGE_MAX bytes: by arithmetic; hit paths read the same from a table.
 * From 256 bytes on, the bits of size - 1 below its highest one tell the step. */
ALWAYS_INLINE unsigned size_class_of(size_t size)
{
    size_t below = size - (size != 0);
    if (below < 256)
        return 1 + (unsigned)(below / 16);
    unsigned power = bits_highest(below);
    if (power < 17)
        return 17 + (power - 8) * 8 + (below >> (power - 3) & 7) + (below - 100 * KIB < 4 * KIB);
    return power == 17 ? 89 + (below >> 16 & 1)
                       : 91 + (power - 18) * 4 + (below >> (power - 2) & 3);
}

/* Smallest class each of whose blocks has `size` bytes at a multiple of `alignment`; CLASS_NONE:
 * none. Blocks lie at multiples of their size from the start of a slab. */
unsigned size_class_aligned(size_t size, size_t alignment);

/* Smallest class that serves `size` <= LARGE_MAX bytes by a slab of its own. */
unsigned size_class_single(size_t size);

/* The size to allocate when realloc moves a block of `before` bytes to `size` bytes: one that grows
 * by little gets room for more of such steps, so that it is not copied at each. Behind a large
 * block, the room costs addresses but no memory. */
ALWAYS_INLINE size_t size_with_headroom(size_t before, size_t size)
{
    bool by_little = size > before && size - before <= before / HEADROOM_PART && size <= LARGE_MAX;
    return by_little ? size_min(size + size / HEADROOM_PART, LARGE_MAX) : size;
}

/* Index of the block that holds byte `offset` of a slab of the class. */
ALWAYS_INLINE unsigned size_class_index(unsigned size_class, size_t offset)
{
    return (unsigned)((offset * size_classes[size_class].reciprocal) >> RECIPROCAL_SHIFT);
}

/* Index of the block that starts at the offset; if none does, more than any slab has blocks. A
 * multiple of an odd number times its inverse is the quotient; all other products are greater. A
 * rotation divides by the power of two in the size, and makes numbers that are no multiples of it
 * great. */
ALWAYS_INLINE size_t size_class_exact_index(const struct size_class *layout, size_t offset)
{
    unsigned shift = bits_lowest(layout->size);
    uint64_t product = offset * layout->inverse;
    return product >> shift | product << (64 - shift);
}

/* Whether a block starts at the address, which lies in a slab of the class. Slabs start at
 * multiples of their alignment, so arithmetic decides. For a block with a slab of its own, the
 * caller knows that a block, if any, starts in this unit. */
ALWAYS_INLINE bool size_class_starts_at(unsigned size_class, const void *address)
{
    const struct size_class *layout = &size_classes[size_class];
    size_t offset = (uintptr_t)address & (layout->alignment * UNIT_SIZE - 1);
    return size_class_exact_index(layout, offset) < layout->blocks;
}

#endif
