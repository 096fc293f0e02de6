/* Patterns of long blocks, the check of zeroed memory, and where exactly a block went wrong. */
#include "content.h"

enum { ZERO_FULL_BYTES = 64 * 1024, ZERO_EDGE_BYTES = 4096, ZERO_STRIDE_BYTES = 512 };

static size_t first_tail_word(size_t size)
{
    return (size - CONTENT_EDGE_BYTES) >> 3;
}

void content_write_long(uint64_t *words, uint64_t pattern, size_t size, size_t usable)
{
    for (size_t i = 0; i < CONTENT_EDGE_BYTES / 8; i++)
        words[i] = pattern + i * CONTENT_STEP;
    for (size_t at = content_page_offset(pattern); at + 8 <= size; at += CONTENT_PAGE_BYTES)
        words[at >> 3] = pattern + (at >> 3) * CONTENT_STEP;
    content_write_range(words, pattern, first_tail_word(size), size, usable);
}

bool content_matches_long(
    const uint64_t *words, uint64_t pattern, size_t written, size_t kept, size_t usable)
{
    size_t head = kept < CONTENT_EDGE_BYTES ? kept : CONTENT_EDGE_BYTES;
    uint64_t difference = content_compare_range(words, pattern, 0, head, usable);

    for (size_t at = content_page_offset(pattern); at + 8 <= kept; at += CONTENT_PAGE_BYTES)
        difference |= words[at >> 3] ^ (pattern + (at >> 3) * CONTENT_STEP);
    if (kept > first_tail_word(written) << 3)
        difference |= content_compare_range(words, pattern, first_tail_word(written), kept, usable);
    return difference == 0;
}

size_t content_first_wrong(
    const void *block, uint64_t pattern, size_t written, size_t kept, size_t usable)
{
    const uint64_t *words = block;
    bool filled = written <= CONTENT_FULL_BYTES;
    size_t head = filled ? kept : CONTENT_EDGE_BYTES;
    size_t tail = filled ? 0 : first_tail_word(written);

    for (size_t i = 0; i << 3 < kept; i++) {
        size_t at = i << 3;
        bool page = !filled && (at & (CONTENT_PAGE_BYTES - 1)) == content_page_offset(pattern) &&
                    at + 8 <= kept;
        bool carries = at < head || i >= tail || page;
        size_t end = at + 8 < kept ? at + 8 : kept;

        if (carries && content_compare_range(words, pattern, i, end, usable) != 0)
            return at;
    }
    return CONTENT_INTACT;
}

/* Offset of the first non-zero byte of [from, to), or CONTENT_INTACT. `from` is a multiple of 8. */
static size_t first_nonzero_between(const uint8_t *bytes, size_t from, size_t to)
{
    const uint64_t *words = (const uint64_t *)(const void *)bytes;
    size_t at = from;

    for (; at + 64 <= to; at += 64) {
        const uint64_t *w = &words[at >> 3];
        uint64_t low = w[0] | w[1] | w[2] | w[3];
        uint64_t high = w[4] | w[5] | w[6] | w[7];

        if ((low | high) != 0)
            break;
    }
    for (; at + 8 <= to && words[at >> 3] == 0; at += 8)
        continue;
    for (; at < to; at++)
        if (bytes[at] != 0)
            return at;
    return CONTENT_INTACT;
}

size_t content_first_nonzero(const void *block, size_t from, size_t to)
{
    const uint64_t *words = block;
    size_t found;

    for (; from < to && (from & 7) != 0; from++)
        if (((const uint8_t *)block)[from] != 0)
            return from;
    if (from + ZERO_FULL_BYTES >= to)
        return first_nonzero_between(block, from, to);
    found = first_nonzero_between(block, from, from + ZERO_EDGE_BYTES);
    if (found != CONTENT_INTACT)
        return found;
    for (size_t at = from + ZERO_EDGE_BYTES; at + 8 <= to; at += ZERO_STRIDE_BYTES)
        if (words[at >> 3] != 0)
            return first_nonzero_between(block, at, at + 8);
    return first_nonzero_between(block, (to - ZERO_EDGE_BYTES) & ~(size_t)7, to);
}
