#include "misuse.h"

/* A block that another thread has freed is read.
 * tiny, mid, large: reads data
 * big: reads data or ends by SIGSEGV
 * hardened tiny, mid: reads zero
 * hardened large, big: ends by SIGSEGV */
CASE(bounds, read_after_free_by_another_thread)
{
    char *block = new_victim(size);
    memset(block, 0x41, size);
    run_in_thread(thread_frees, block);
    read_bytes(block, size);
    survived();
}

/* A freed block is read, by WAY.
 * tiny, mid, large: reads data
 * big: reads data or ends by SIGSEGV
 * hardened tiny, mid: reads zero
 * hardened large, big: ends by SIGSEGV */
MISTAKE(
    bounds, read_after_free_way, new_victim(size), memset(block, 0x41, size), free(block),
    read_bytes(block, size))

/* A block that realloc has moved is read where it was, by WAY.
 * tiny, mid, large: reads data
 * big: reads data or ends by SIGSEGV
 * hardened tiny, mid: reads zero
 * hardened large, big: ends by SIGSEGV */
CASE(bounds, read_after_realloc_way)
{
    char *block = new_victim(size);
    memset(block, 0x41, size);
    /* What lies behind keeps it from growing in place. */
    (void)need(malloc(size));
    if (need(realloc(block, 8 * size)) == block)
        not_applicable();
    read_bytes(block, size);
    survived();
}

/* One MiB before the start of a block that has neighbours is read, by WAY.
 * all: reads data or ends by SIGSEGV
 * big: reads data or reads zero or ends by SIGSEGV
 * hardened all: ends by SIGSEGV */
SURROUNDED(bounds, read_before_start_1_mib_way, read_bytes(block - MIB, MIB))

/* DISTANCE bytes before the start of a block that has neighbours are read, by WAY.
 * all: reads data or reads zero
 * big: reads data or reads zero or ends by SIGSEGV
 * hardened tiny, mid, large: reads data or reads zero or ends by SIGSEGV
 * hardened big: ends by SIGSEGV */
SURROUNDED(bounds, read_before_start_n_way, read_bytes(block - distance, distance))

/* A block of no bytes is read, by WAY.
 * any: reads data or reads zero
 * hardened any: ends by SIGSEGV */
CASE(bounds, read_from_nothing_way)
{
    char *block = new_victim(0);
    read_bytes(block, 1);
    survived();
    free(block);
}

/* One MiB past the end of a block that has neighbours is read, by WAY.
 * all: reads data or ends by SIGSEGV
 * big: reads data or reads zero or ends by SIGSEGV
 * hardened all: ends by SIGSEGV */
SURROUNDED(bounds, read_past_end_1_mib_way, read_bytes(block + malloc_usable_size(block), MIB))

/* DISTANCE bytes past the end of a block that has neighbours are read, by WAY.
 * all: reads data or reads zero
 * big: reads data or reads zero or ends by SIGSEGV
 * hardened tiny, mid, large: reads data or reads zero or ends by SIGSEGV
 * hardened big: ends by SIGSEGV */
SURROUNDED(bounds, read_past_end_n_way, read_bytes(block + malloc_usable_size(block), distance))

/* Memory some pages from a block, in which malloc has never handed out a block, is written to; then
 * blocks are handed out there.
 * tiny: not caught or not applicable
 * mid, large, big: not applicable
 * hardened tiny: at once or not applicable | malloc(): stray write to NEIGHBOUR */
CASE(bounds, stray_write)
{
    enum { LENGTH_MAX = 512, APART = 16384, WRITTEN = 16 };
    /* Of longer ones the slab may end before. */
    if (size > LENGTH_MAX)
        not_applicable();
    char *block = need(malloc(size));
    announce(block, block);
    write_bytes(block + APART, WRITTEN);
    for (size_t i = many(size); i > 0; i--)
        (void)need(malloc(size));
    survived();
}

/* Of many blocks that are freed at once the last one is written to.
 * tiny, mid, large: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at flush or at exit | free(): write after free of BAD
 * hardened large: at exit or ends by SIGSEGV | free(): write after free of BAD
 * hardened big: ends by SIGSEGV */
CASE(bounds, write_after_free_of_many)
{
    char *blocks[GROUP_MAX + 1] = {NULL};
    size_t count = group_for(size);
    for (size_t i = 0; i < count; i++)
        blocks[i] = memset(need(malloc(size)), 1, size);
    char *last = blocks[count - 1];
    announce(last, last);
    free_group(blocks);
    write_bytes(last, 1);
    survived();
}

/* A freed block is written to, by WAY, and handed out again.
 * tiny, mid, large: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at flush or at exit | free(): write after free of BAD | malloc(): write after
 *     free of BAD
 * hardened large, big: ends by SIGSEGV
 * hardened memcpy all: at once | memcpy(): write after free of BAD */
CASE(bounds, write_after_free_way)
{
    void *block = new_victim(size);
    free(block);
    write_bytes(block, size);
    survived();
    for (size_t i = many(size); i > 0; i--)
        free(need(malloc(size)));
}

/* A freed block is written to when its memory has gone back to the system.
 * tiny, mid: not caught
 * large: not caught or ends by SIGSEGV
 * big: ends by SIGSEGV
 * hardened tiny, mid: at exit | free(): write after free of BAD */
MISTAKE(bounds, write_after_purge, new_purged_victim(size), write_bytes(block, size))

/* One MiB is written before the start of a block that has neighbours, by WAY.
 * all: not caught or ends by SIGSEGV
 * hardened all: ends by SIGSEGV
 * hardened memcpy all: at once or ends by SIGSEGV | memcpy(): write beyond the end of NEIGHBOUR |
 *     memcpy(): write before the start of BAD | memcpy(): write after free of NEIGHBOUR |
 *     memcpy(): stray write to NEIGHBOUR */
SURROUNDED(bounds, write_before_start_1_mib_way, write_bytes(block - MIB, MIB))

/* DISTANCE bytes are written before the start of a block that has neighbours, by WAY.
 * all: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at free or ends by SIGSEGV | free(): write beyond the end of NEIGHBOUR |
 *     free(): write before the start of BAD
 * hardened large: at free | free(): write beyond the end of BAD
 * hardened big: ends by SIGSEGV
 * hardened memcpy tiny, mid: at once | memcpy(): write beyond the end of NEIGHBOUR |
 *     memcpy(): write before the start of BAD
 * hardened memcpy large: at once | memcpy(): write before the start of BAD
 * hardened memcpy big: at once or ends by SIGSEGV | memcpy(): write before the start of BAD */
CASE(bounds, write_before_start_n_way)
{
    char *block = surrounded(size);
    volatile char *before = hide(block - 1);
    bool same = *before == 0x41;
    write_bytes(block - distance, distance);
    /* One canary of 256 ends with the very byte that was written, which changed nothing. */
    if (same)
        *before = 0x42;
    survived();
    free_surrounded();
}

/* realloc makes a block shorter by an eighth, and a byte of that eighth is written, by WAY.
 * tiny, mid, large: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at once | free(): write beyond the end of BAD
 * hardened large, big: at once or ends by SIGSEGV or not caught | free(): write beyond the end of
 *     BAD
 * hardened memcpy tiny, mid, large: at once | memcpy(): write beyond the end of BAD
 * hardened memcpy big: at once or ends by SIGSEGV | memcpy(): write beyond the end of BAD */
CASE(bounds, write_behind_shrunk_way)
{
    char *block = need(malloc(size));
    memset(block, 1, size);
    char *shrunk = need(realloc(block, size - size / 8));
    announce(shrunk, shrunk);
    if (shrunk != block)
        not_applicable();
    write_bytes(shrunk + size - size / 16, 1);
    free_wrongly(shrunk);
}

/* One byte in the middle of a freed block is written to, and the block is handed out again.
 * tiny, mid, large: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at flush or at exit | free(): write after free of BAD | malloc(): write after
 *     free of BAD
 * hardened large, big: ends by SIGSEGV */
CASE(bounds, write_one_byte_after_free)
{
    char *block = new_victim(size);
    free(block);
    write_bytes(block + size / 2, 1);
    survived();
    for (size_t i = many(size); i > 0; i--)
        free(need(malloc(size)));
}

/* One MiB is written past the end of a block that has neighbours, by WAY.
 * all: not caught or ends by SIGSEGV
 * hardened all: ends by SIGSEGV
 * hardened memcpy tiny, mid, large: at once | memcpy(): write beyond the end of BAD
 * hardened memcpy big: at once or ends by SIGSEGV | memcpy(): write beyond the end of BAD */
SURROUNDED(bounds, write_past_end_1_mib_way, write_bytes(block + malloc_usable_size(block), MIB))

/* realloc makes a block longer and shorter, and a byte is written behind what is left of it.
 * tiny, mid, large: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at once | free(): write beyond the end of BAD
 * hardened large, big: at once or ends by SIGSEGV | free(): write beyond the end of BAD */
CASE(bounds, write_past_end_after_realloc)
{
    char *block = need(malloc(size));
    block = need(realloc(block, 2 * size));
    block = need(realloc(block, size - size / 8));
    announce(block, block);
    write_bytes(block + (size - size / 8), 1);
    free_wrongly(block);
}

/* DISTANCE bytes are written past the end of a block that has neighbours, by WAY.
 * all: not caught
 * big: not caught or ends by SIGSEGV
 * hardened tiny, mid: at free or ends by SIGSEGV | free(): write beyond the end of BAD
 * hardened large, big: ends by SIGSEGV
 * hardened memcpy tiny, mid, large: at once | memcpy(): write beyond the end of BAD
 * hardened memcpy big: at once or ends by SIGSEGV | memcpy(): write beyond the end of BAD */
SURROUNDED(bounds, write_past_end_n_way, write_bytes(block + malloc_usable_size(block), distance))

/* An array grows by realloc, step by step, and its last element is written one too far.
 * all: not caught
 * hardened tiny, mid, large: at once | realloc(): write beyond the end of BAD
 * hardened big: at once or ends by SIGSEGV or not caught | realloc(): write beyond the end of BAD
 */
CASE(bounds, write_past_end_of_array)
{
    char *block = NULL;
    size_t step = size / 16 + 8;
    for (size_t length = step; length <= size; length += step) {
        block = need(realloc(block, length));
        memset(block, 1, length);
        size_t rest = length + step;
        if (rest > size) {
            announce(block, block);
            write_bytes(block + length, 1);
            block = need(realloc(block, rest));
        }
    }
    survived();
    free(block);
}

/* A string without its end is copied to a block whose neighbour holds another one: nothing of that
 * is read along in the preset, where a zero stands between the two.
 * all: reads data or reads zero or ends by SIGSEGV
 * hardened tiny, mid: reads zero
 * hardened large, big: reads zero or ends by SIGSEGV */
CASE(bounds, write_string_past_end)
{
    char *block = surrounded(size);
    memset(block, 'a', size);
    has_read(strlen(hide(block)) == size);
    survived();
}

/* A block of no bytes that has an alignment is written to.
 * any: not caught
 * hardened any: ends by SIGSEGV */
CASE(bounds, write_to_aligned_nothing)
{
    char *block = need(aligned_alloc(size, 0));
    announce(block, block);
    write_bytes(block, 1);
    survived();
    free(block);
}

/* A block of no bytes is written to, by WAY.
 * any: not caught
 * hardened any: ends by SIGSEGV */
CASE(bounds, write_to_nothing_way)
{
    char *block = new_victim(0);
    write_bytes(block, 1);
    survived();
    free(block);
}

/* The byte behind a block is set to zero, as by a string that is one letter too long. A zero stands
 * there where nothing else does.
 * all: not caught
 * hardened large, big: ends by SIGSEGV */
SURROUNDED(bounds, write_zero_past_end, *(volatile char *)hide(block + size) = 0)

/* The same by memset, which sees it.
 * all: not caught
 * hardened tiny, mid, large: at once | memset(): write beyond the end of BAD
 * hardened big: at once or ends by SIGSEGV | memset(): write beyond the end of BAD */
SURROUNDED(bounds, write_zero_past_end_by_memset, memset(hide(block + size), 0, 1))

/* How many bytes there are from behind the end of a block is asked for.
 * all: not caught
 * hardened all: at once or not caught | malloc_object_size(): invalid pointer BAD: not allocated by
 *     hakmem */
CASE(bounds, object_size_behind_end)
{
    char *block = need(malloc(size));
    announce(block + size + 1, block);
    malloc_object_size(hide(block + size + 1));
    survived();
    free(block);
}
