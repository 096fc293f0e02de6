/* See size_class.h. The list of sizes below is the one place that defines the classes. */
#include "map/size_class.h"

#define UNITS_OF(size) ((size) > 16384 ? 4 : (size) > 8192 ? 2 : 1)

/* Newton's method doubles the bits that are right: 5, 10, 20, 40, 80. */
#define ODD_PART(size) ((uint64_t)(size) / ((size) & -(uint64_t)(size)))
#define DOUBLE_BITS(odd, inverse) ((inverse) * (2 - (odd) * (inverse)))
#define INVERSE_10(odd) DOUBLE_BITS(odd, 3 * (odd) ^ 2)
#define INVERSE_40(odd) DOUBLE_BITS(odd, DOUBLE_BITS(odd, INVERSE_10(odd)))
#define INVERSE(odd) DOUBLE_BITS(odd, INVERSE_40(odd))

#define CLASS(size)                                                                                \
    {                                                                                              \
        (size), (uint16_t)(UNITS_OF(size) * UNIT_SIZE / (size)), UNITS_OF(size),                   \
            (((uint64_t)1 << RECIPROCAL_SHIFT) + (size)-1) / (size), INVERSE(ODD_PART(size))       \
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
    CLASS(32768), CLASS(16),    CLASS(32),    CLASS(48),
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

unsigned size_class_aligned(size_t size, size_t alignment)
{
    if (size > MID_MAX || alignment > MID_MAX)
        return CLASS_NONE;
    unsigned class = size_class_of(size_max(size, alignment));
    while (class <= SIZE_COUNT && (size_classes[class].size & (alignment - 1)) != 0)
        class ++;
    return class <= SIZE_COUNT ? class : CLASS_NONE;
}
