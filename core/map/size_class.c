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

/* The fewest units that hold four blocks of up to 32 KiB, and leave no more than a fifth unused:
 * what lies free beside a live block serves no other class. */
#define HOLD(units, size)                                                                          \
    ((units)*UNIT_SIZE % (size)*5 <= (units)*UNIT_SIZE &&                                          \
     (units)*UNIT_SIZE / (size) >= ((size) > MID_MAX ? 1 : 4))
#define UNITS_OF(size) (HOLD(1, size) ? 1 : HOLD(2, size) ? 2 : HOLD(4, size) ? 4 : 8)
#define CLASS(size) BLOCKS_IN(UNITS_OF(size), size)

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

/* The size of most blocks that fill large heaps is 64 KiB, which needs few records. */
#define FROM_36_TO_64_KIB                                                                          \
    CLASS(36 * KIB), CLASS(40 * KIB), CLASS(44 * KIB), CLASS(48 * KIB), CLASS(52 * KIB),           \
        CLASS(56 * KIB), CLASS(60 * KIB), BLOCKS_IN(8, 64 * KIB)

/* 100 and not 104 KiB, of which eight units hold only four. */
#define FROM_72_TO_120_KIB                                                                         \
    CLASS(72 * KIB), CLASS(80 * KIB), CLASS(88 * KIB), CLASS(96 * KIB), CLASS(100 * KIB),          \
        CLASS(112 * KIB), CLASS(120 * KIB)

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
    FROM_36_TO_64_KIB,
    FROM_72_TO_120_KIB,
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
