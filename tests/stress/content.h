/* What the stress writes into its blocks, and how it proves that it is still there.
 *
 * Word i of a block (8 bytes at offset 8 * i) holds pattern + i * CONTENT_STEP, where the pattern
 * is a random number of the block's own: words of another block, another place or another life
 * of the same address do not match. Blocks up to 256 bytes are filled. Longer ones carry the
 * pattern in their first 32 bytes, their last 32 bytes and in one word of every 4 KiB, at an
 * offset that the pattern chooses. The last usable byte is written in any case.
 *
 * Thread rule: called by the thread that owns the block. */
#ifndef STRESS_CONTENT_H
#define STRESS_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CONTENT_STEP 0x9E3779B97F4A7C15ULL
#define CONTENT_INTACT SIZE_MAX

enum { CONTENT_FULL_BYTES = 256, CONTENT_EDGE_BYTES = 32, CONTENT_PAGE_BYTES = 4096 };

/* Stores and loads the first `bytes` (1 to 8) bytes of a word without touching the others. */
static inline void content_put(uint64_t *at, uint64_t word, size_t bytes)
{
    memcpy(at, &word, bytes);
}

static inline uint64_t content_get(const uint64_t *at, size_t bytes)
{
    uint64_t word = 0;

    memcpy(&word, at, bytes);
    return word;
}

/* Writes words [from, to) of the pattern and the part of word `to` that is below `size`. A whole
 * last word is written when the usable size has room for it. */
static inline void content_write_range(
    uint64_t *words, uint64_t pattern, size_t from, size_t size, size_t usable)
{
    size_t whole = (size + 7) >> 3;
    uint64_t word = pattern + from * CONTENT_STEP;

    if (__builtin_expect((whole << 3) > usable, 0)) {
        whole = size >> 3;
        content_put(&words[whole], pattern + whole * CONTENT_STEP, size & 7);
    }
    for (size_t i = from; i < whole; i++, word += CONTENT_STEP)
        words[i] = word;
}

/* Bits that differ in words [from, size / 8) and in the bytes of the last, partial word. */
static inline uint64_t content_compare_range(
    const uint64_t *words, uint64_t pattern, size_t from, size_t size, size_t usable)
{
    size_t whole = size >> 3;
    uint64_t word = pattern + from * CONTENT_STEP;
    uint64_t difference = 0;

    for (size_t i = from; i < whole; i++, word += CONTENT_STEP)
        difference |= words[i] ^ word;
    if ((size & 7) != 0 && whole >= from) {
        uint64_t mask = ((uint64_t)1 << ((size & 7) * 8)) - 1;
        bool room = (whole << 3) + 8 <= usable;
        uint64_t last = room ? words[whole] : content_get(&words[whole], size & 7);

        difference |= (last ^ (pattern + whole * CONTENT_STEP)) & mask;
    }
    return difference;
}

/* The offset of the pattern's word in each 4 KiB. */
static inline size_t content_page_offset(uint64_t pattern)
{
    return (pattern >> 40) & (CONTENT_PAGE_BYTES - 8);
}

static inline uint8_t content_last_byte(uint64_t pattern)
{
    return (uint8_t)(pattern >> 56);
}

/* Says whether the last usable byte lies behind everything content_write_range wrote. */
static inline bool content_has_last_byte(size_t size, size_t usable)
{
    return usable > ((size + 7) & ~(size_t)7);
}

/* Blocks longer than CONTENT_FULL_BYTES. */
void content_write_long(uint64_t *words, uint64_t pattern, size_t size, size_t usable);
bool content_matches_long(
    const uint64_t *words, uint64_t pattern, size_t written, size_t kept, size_t usable);

/* Fills a new block. */
static inline void content_write(void *block, uint64_t pattern, size_t size, size_t usable)
{
    if (content_has_last_byte(size, usable))
        ((uint8_t *)block)[usable - 1] = content_last_byte(pattern);
    if (size <= CONTENT_FULL_BYTES)
        content_write_range(block, pattern, 0, size, usable);
    else
        content_write_long(block, pattern, size, usable);
}

/* Says whether the first `kept` bytes of a block that was filled as one of `written` bytes still
 * hold what was written. `kept` < `written` after a realloc that made the block smaller. */
static inline bool content_matches(
    const void *block, uint64_t pattern, size_t written, size_t kept, size_t usable)
{
    if (written <= CONTENT_FULL_BYTES)
        return content_compare_range(block, pattern, 0, kept, usable) == 0;
    return content_matches_long(block, pattern, written, kept, usable);
}

/* Offset of the first wrong word, for the report of a failure. */
size_t content_first_wrong(
    const void *block, uint64_t pattern, size_t written, size_t kept, size_t usable);

/* Offset of the first byte of [from, to) that is not zero, or CONTENT_INTACT: all bytes up to 64
 * KiB, above that the first and last 4 KiB and one word of every 512 bytes. */
size_t content_first_nonzero(const void *block, size_t from, size_t to);

#endif
