/* See size_class.h. The list of sizes below is the one place that defines the classes. */
#include "map/size_class.h"

#define RECIPROCAL(size) ((((uint64_t)1 << RECIPROCAL_SHIFT) + (size)-1) / (size))

/* Newton's method doubles the bits that are right: 5, 10, 20, 40, 80. */
#define ODD_PART(size) ((uint64_t)(size) / ((size) & -(uint64_t)(size)))
#define DOUBLE_BITS(odd, inverse) ((inverse) * (2 - (odd) * (inverse)))
#define INVERSE_10(odd) DOUBLE_BITS(odd, 3 * (odd) ^ 2)
#define INVERSE_40(odd) DOUBLE_BITS(odd, DOUBLE_BITS(odd, INVERSE_10(odd)))
#define INVERSE(odd) DOUBLE_BITS(odd, INVERSE_40(odd))

/* Several blocks in a slab of `units` units, a power of two. */
#define BLOCKS_IN(units, size)                                                                     \
    {                                                                                              \
        (size), (uint16_t)((units)*UNIT_SIZE / (size)), (units), (units), RECIPROCAL(size),        \
            INVERSE(ODD_PART(size))                                                                \
    }

#define UNITS_OF(size) ((size) > 16384 ? 4 : (size) > 8192 ? 2 : 1)
#define CLASS(size) BLOCKS_IN(UNITS_OF(size), size)

/* For each size, the length that leaves the smaller part of the slab unused; for 64 KiB, the size
 * of most blocks that fill large heaps, the one that needs fewer records. 100 and not 104 KiB,
 * since a slab would hold four blocks of 104 KiB instead of five. */
#define IN_4(kib) BLOCKS_IN(4, (kib)*KIB)
#define IN_8(kib) BLOCKS_IN(8, (kib)*KIB)

/* One block of `units` units. */
#define SINGLE(units)                                                                              \
    {                                                                                              \
        (units) * (uint32_t)UNIT_SIZE, 1, (units), 1, RECIPROCAL((units)*UNIT_SIZE),               \
            INVERSE(ODD_PART(units))                                                               \
    }

/* Classes of which each is one step longer than the one before. */
#define SINGLES(first, step)                                                                       \
    SINGLE(first), SINGLE(first + step), SINGLE(first + 2 * step), SINGLE(first + 3 * step)
#define CLASSES(first, step)                                                                       \
    CLASS(first), CLASS(first + step), CLASS(first + 2 * step), CLASS(first + 3 * step),           \
        CLASS(first + 4 * step), CLASS(first + 5 * step), CLASS(first + 6 * step),                 \
        CLASS(first + 7 * step)

#define FROM_36_TO_120_KIB                                                                         \
    IN_4(36), IN_4(40), IN_8(44), IN_4(48), IN_8(52), IN_8(56), IN_4(60), IN_8(64), IN_8(72),      \
        IN_4(80), IN_8(88), IN_8(96), IN_8(100), IN_8(112), IN_4(120)

const struct size_class size_classes[CLASS_COUNT] = {
    {0},
    CLASSES(16, 16),
    CLASSES(144, 16),
    CLASSES(288, 32),
    CLASSES(576, 64),
    CLASSES(1152, 128),
    CLASSES(2304, 256),
    CLASSES(4608, 512),
    CLASSES(9216, 1024),
    CLASSES(18432, 2048),
    FROM_36_TO_120_KIB,
    SINGLE(2),
    SINGLE(3),
    SINGLE(4),
    SINGLES(5, 1),
    SINGLES(10, 2),
    SINGLES(20, 4),
    CLASS(16),
    CLASS(32),
    CLASS(48)};

/* Every block of the class starts at a multiple of the alignment. */
static bool is_aligned(const struct size_class *layout, size_t alignment)
{
    return (layout->size & (alignment - 1)) == 0 && alignment <= layout->alignment * UNIT_SIZE;
}

unsigned size_class_aligned(size_t size, size_t alignment)
{
    if (size > LARGE_MAX || alignment > LARGE_MAX)
        return CLASS_NONE;
    unsigned size_class = size_class_of(size_max(size, alignment));
    while (size_class <= SIZE_COUNT && !is_aligned(&size_classes[size_class], alignment))
        size_class++;
    return size_class <= SIZE_COUNT ? size_class : CLASS_NONE;
}

unsigned size_class_single(size_t size)
{
    return (unsigned)size_max(size_class_of(size), SINGLE_CLASS_FIRST);
}
