/* The target `heap`: a record of its input, and the numbers that it stands for. */
#ifndef FUZZ_HEAP_RECORD_H
#define FUZZ_HEAP_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record {
    uint8_t step; /* low 5 bits: which; high 3 bits: how often */
    uint8_t slot; /* in steps of 4 */
    uint8_t size; /* see decode_size */
    uint8_t fine; /* what is added to the size, the alignment, a value */

    /* By the record before this one, if that named a size for it. */
    bool is_sized;
    size_t named_size;
};

/* The size that was named, or from 0 to 112 KiB, mostly below 32 KiB. */
size_t decode_size(const struct record *record);

/* The same, of those that were not named one in four above 112 KiB. */
size_t decode_wide_size(const struct record *record);

/* What a record names: from 0 to 8 MiB, beside a size class or anywhere. */
size_t decode_named_size(const struct record *record);

/* A size that nobody can have. */
size_t decode_refused_size(const struct record *record);

/* log2 of an alignment: from 8 bytes to 64 MiB, mostly up to a page. */
unsigned decode_align_log2(const struct record *record);

/* From 1 to 255, mostly 1. */
unsigned decode_repetitions(const struct record *record);

#endif
