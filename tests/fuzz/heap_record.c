/* The target `heap`: the numbers in a record. Most of them lie where something begins or ends. */
#include "heap_record.h"

#include "api/alloc.h"

/* Where tiers and their parts begin and end. */
static const size_t borders[16] = {
    0,
    16,
    256,
    TINY_MAX,
    4096,
    MID_MAX,
    UNIT_SIZE,
    2 * UNIT_SIZE,
    4 * UNIT_SIZE,
    REGION_SIZE / 2,
    REGION_SIZE - 4096,
    REGION_SIZE - 1,
    REGION_SIZE,
    REGION_SIZE + 4096,
    2 * REGION_SIZE,
    4 * REGION_SIZE,
};

/* What nobody can have. */
static const size_t refused_sizes[] = {
    SIZE_MAX,       SIZE_MAX - 4095, (size_t)PTRDIFF_MAX + 1, PTRDIFF_MAX,
    SIZE_LIMIT + 1, SIZE_LIMIT,      SIZE_LIMIT - 1,          SIZE_LIMIT - 4096,
};

/* Size classes and their neighbours, of which one byte names most. */
size_t decode_size(const struct record *record)
{
    enum { SELECTORS = 3 };
    long size = (long)size_classes[1 + record->size / SELECTORS].size + (record->fine - 128) / 8;

    if (record->is_sized)
        return record->named_size;
    return size > 0 ? (size_t)size : 0;
}

/* Half of them lie beside a class, at a distance of up to 2 KiB; of the others all lengths in bits
 * are as likely. */
size_t decode_named_size(const struct record *record)
{
    enum { ANYWHERE = 128, LENGTHS = 23 };
    unsigned selector = record->slot % ANYWHERE;
    long delta = ((long)record->fine - 128) * (1 << record->size % 8) / 8;

    if (record->slot >= ANYWHERE) {
        unsigned log2 = selector % LENGTHS;
        size_t bits = (size_t)record->size << 8 | record->fine;
        return ((size_t)1 << log2) + (bits << log2 >> 16);
    }
    delta += (long)size_classes[1 + selector % SIZE_COUNT].size;
    return delta > 0 ? (size_t)delta : 0;
}

size_t decode_wide_size(const struct record *record)
{
    unsigned selector = record->size;

    if (record->is_sized || selector < 192)
        return decode_size(record);
    if (selector < 240)
        return (selector - 187) * (REGION_SIZE / 64) + record->fine;
    return borders[selector - 240] + record->fine % 4;
}

unsigned decode_align_log2(const struct record *record)
{
    unsigned log2 = 3 + (record->fine & 15);
    return (record->fine & 0xC0) == 0xC0 ? log2 + 8 : log2 <= 12 ? log2 : log2 - 6;
}

size_t decode_refused_size(const struct record *record)
{
    return refused_sizes[record->size % ARRAY_LENGTH(refused_sizes)];
}

unsigned decode_repetitions(const struct record *record)
{
    static const uint8_t repetitions[] = {1, 1, 1, 2, 5, 16, 64, 255};
    unsigned count = repetitions[record->step >> 5];
    /* Many long blocks would only take the time that other inputs need. */
    return decode_size(record) <= MID_MAX || count < 3 ? count : 3;
}
