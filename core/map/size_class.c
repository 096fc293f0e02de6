/* See size_class.h. The list of sizes below is the one place that defines the classes. */
#include "map/size_class.h"

#define RECIPROCAL(size) ((((uint64_t)1 << RECIPROCAL_SHIFT) + (size)-1) / (size))

/* Newton's method doubles the bits that are right: 5, 10, 20, 40, 80. */
#define ODD_PART(size) ((uint64_t)(size) / ((size) & -(uint64_t)(size)))
#define DOUBLE_BITS(odd, inverse) ((inverse) * (2 - (odd) * (inverse)))
#define INVERSE_10(odd) DOUBLE_BITS(odd, 3 * (odd) ^ 2)
#define INVERSE_40(odd) DOUBLE_BITS(odd, DOUBLE_BITS(odd, INVERSE_10(odd)))
#define INVERSE(odd) DOUBLE_BITS(odd, INVERSE_40(odd))

/* Several blocks in a slab of so many units, a power of two. */
#define BLOCKS_IN(units, size)                                                                     \
    {                                                                                              \
        (size), (uint16_t)((units)*UNIT_SIZE / (size)), (units), (units), RECIPROCAL(size),        \
            INVERSE(ODD_PART(size))                                                                \
    }

#define UNITS_OF(size) ((size) > 16384 ? 4 : (size) > 8192 ? 2 : 1)
#define CLASS(size) BLOCKS_IN(UNITS_OF(size), size)

/* For each size the length that leaves the smaller part of the slab unused; of 64 KiB, the size of
 * most blocks that fill large heaps, that which needs fewer records. 100 and not 104 KiB, of which
 * a slab would hold four blocks instead of five. */
#define IN_4(kib) BLOCKS_IN(4, (kib)*KIB)
#define IN_8(kib) BLOCKS_IN(8, (kib)*KIB)

/* One block of so many units. */
#define SINGLE(units)                                                                              \
    {                                                                                              \
        (units) * (uint32_t)UNIT_SIZE, 1, (units), 1, RECIPROCAL((units)*UNIT_SIZE),               \
            INVERSE(ODD_PART(units))                                                               \
    }

const struct size_class size_classes[CLASS_COUNT] = {
    {0},          CLASS(16),    CLASS(32),    CLASS(48),    CLASS(64),    CLASS(80),
    CLASS(96),    CLASS(112),   CLASS(128),   CLASS(144),   CLASS(160),   CLASS(176),
    CLASS(192),   CLASS(208),   CLASS(224),   CLASS(240),   CLASS(256),   CLASS(288),
    CLASS(320),   CLASS(352),   CLASS(384),   CLASS(416),   CLASS(448),   CLASS(480),
    CLASS(512),   CLASS(576),   CLASS(640),   CLASS(704),   CLASS(768),   CLASS(832),
    CLASS(896),   CLASS(960),   CLASS(1024),  CLASS(1152),  CLASS(1280),  CLASS(1408),
    CLASS(1536),  CLASS(1664),  CLASS(1792),  CLASS(1920),  CLASS(2048),  CLASS(2304),
    CLASS(2560),  CLASS(2816),  CLASS(3072),  CLASS(3328),  CLASS(3584),  CLASS(3840),
    CLASS(4096),  CLASS(4608),  CLASS(5120),  CLASS(5632),  CLASS(6144),  CLASS(6656),
    CLASS(7168),  CLASS(7680),  CLASS(8192),  CLASS(9216),  CLASS(10240), CLASS(11264),
    CLASS(12288), CLASS(13312), CLASS(14336), CLASS(15360), CLASS(16384), CLASS(18432),
    CLASS(20480), CLASS(22528), CLASS(24576), CLASS(26624), CLASS(28672), CLASS(30720),
    CLASS(32768), IN_4(36),     IN_4(40),     IN_8(44),     IN_4(48),     IN_8(52),
    IN_8(56),     IN_4(60),     IN_8(64),     IN_8(72),     IN_4(80),     IN_8(88),
    IN_8(96),     IN_8(100),    IN_8(112),    IN_4(120),    SINGLE(2),    SINGLE(3),
    SINGLE(4),    SINGLE(5),    SINGLE(6),    SINGLE(7),    SINGLE(8),    SINGLE(10),
    SINGLE(12),   SINGLE(14),   SINGLE(16),   SINGLE(20),   SINGLE(24),   SINGLE(28),
    SINGLE(32),   CLASS(16),    CLASS(32),    CLASS(48),
};

const uint8_t tiny_class_table[TINY_MAX / TINY_STEP + 1] = {
    1,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 17, 18, 18, 19,
    19, 20, 20, 21, 21, 22, 22, 23, 23, 24, 24, 25, 25, 25, 25, 26, 26, 26, 26, 27, 27, 27,
    27, 28, 28, 28, 28, 29, 29, 29, 29, 30, 30, 30, 30, 31, 31, 31, 31, 32, 32, 32, 32,
};

const uint8_t mid_class_table[MID_MAX / MID_STEP] = {
    8,  16, 20, 24, 26, 28, 30, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 41, 42, 42, 43, 43, 44, 44,
    45, 45, 46, 46, 47, 47, 48, 48, 49, 49, 49, 49, 50, 50, 50, 50, 51, 51, 51, 51, 52, 52, 52, 52,
    53, 53, 53, 53, 54, 54, 54, 54, 55, 55, 55, 55, 56, 56, 56, 56, 57, 57, 57, 57, 57, 57, 57, 57,
    58, 58, 58, 58, 58, 58, 58, 58, 59, 59, 59, 59, 59, 59, 59, 59, 60, 60, 60, 60, 60, 60, 60, 60,
    61, 61, 61, 61, 61, 61, 61, 61, 62, 62, 62, 62, 62, 62, 62, 62, 63, 63, 63, 63, 63, 63, 63, 63,
    64, 64, 64, 64, 64, 64, 64, 64, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65,
    66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 66, 67, 67, 67, 67, 67, 67, 67, 67,
    67, 67, 67, 67, 67, 67, 67, 67, 68, 68, 68, 68, 68, 68, 68, 68, 68, 68, 68, 68, 68, 68, 68, 68,
    69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 69, 70, 70, 70, 70, 70, 70, 70, 70,
    70, 70, 70, 70, 70, 70, 70, 70, 71, 71, 71, 71, 71, 71, 71, 71, 71, 71, 71, 71, 71, 71, 71, 71,
    72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72,
};

#define TIMES_2(size_class) size_class, size_class
#define TIMES_4(size_class) TIMES_2(size_class), TIMES_2(size_class)
#define TIMES_16(size_class)                                                                       \
    TIMES_4(size_class), TIMES_4(size_class), TIMES_4(size_class), TIMES_4(size_class)
#define TIMES_32(size_class) TIMES_16(size_class), TIMES_16(size_class)
#define TIMES_64(size_class) TIMES_32(size_class), TIMES_32(size_class)

const uint8_t large_class_table[LARGE_MAX / LARGE_STEP] = {
    48,
    56,
    60,
    64,
    66,
    68,
    70,
    72,
    73,
    74,
    75,
    76,
    77,
    78,
    79,
    80,
    TIMES_2(81),
    TIMES_2(82),
    TIMES_2(83),
    TIMES_2(84),
    85,
    86,
    TIMES_2(86),
    TIMES_2(87),
    TIMES_2(88),
    TIMES_16(89),
    TIMES_16(90),
    TIMES_16(91),
    TIMES_16(92),
    TIMES_16(93),
    TIMES_16(94),
    TIMES_32(95),
    TIMES_32(96),
    TIMES_32(97),
    TIMES_32(98),
    TIMES_64(99),
    TIMES_64(100),
    TIMES_64(101),
    TIMES_64(102)};

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
