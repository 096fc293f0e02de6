#include "misuse.h"

/* realloc makes a block a quarter as long, and longer again: what it loses must not come back.
 * all: reads data or reads zero
 * hardened all: reads zero */
CASE(stale, behind_shrunk)
{
    char *block = need(malloc(size));
    memset(block, 1, size);
    block = need(realloc(block, size / 4));
    block = need(realloc(block, size));
    read_bytes(block + size / 4, size - size / 4);
    free(block);
}

/* A block is read that memalign has just returned, where another one was freed.
 * tiny, mid, large: reads data
 * big: reads data or reads zero
 * hardened tiny, mid, large: reads zero */
CASE(stale, fresh_aligned_block)
{
    char *freed = need(memalign(64, size));
    memset(freed, 0x41, size);
    free(freed);
    char *block = need(memalign(64, size));
    announce(block, block);
    read_bytes(block, size);
}

/* A block is read that malloc has just returned, where another one was freed.
 * tiny, mid, large: reads data
 * big: reads data or reads zero
 * hardened tiny, mid, large: reads zero */
CASE(stale, fresh_block)
{
    char *blocks[4];
    for (int i = 0; i < 4; i++)
        blocks[i] = memset(need(malloc(size)), 0x41, size);
    for (int i = 0; i < 4; i++)
        free(blocks[i]);
    char *block = need(malloc(size));
    announce(block, block);
    read_bytes(block, size);
}

/* A block is read that malloc has just returned, where larger ones were freed.
 * tiny, mid, big: reads data or reads zero
 * large: reads data
 * hardened mid, large: reads zero */
CASE(stale, fresh_block_of_another_size)
{
    char *blocks[GROUP_MAX + 1] = {NULL};
    size_t count = group_for(2 * size);
    for (size_t i = 0; i < count; i++)
        blocks[i] = memset(need(malloc(2 * size)), 0x41, 2 * size);
    free_group(blocks);
    (void)hakmem_thread_flush();
    char *block = need(malloc(size));
    announce(block, block);
    read_bytes(block, size);
}

static void *fill_and_free(void *size)
{
    char *blocks[GROUP_MAX + 1] = {NULL};
    size_t bytes = (size_t)size, count = group_for(bytes);
    for (size_t i = 0; i < count; i++)
        blocks[i] = memset(need(malloc(bytes)), 0x41, bytes);
    return free_group(blocks);
}

/* A block is read that malloc has just returned, where one of a thread that has ended was freed.
 * all: reads data or reads zero
 * hardened tiny, mid, large: reads zero */
CASE(stale, fresh_block_of_another_thread)
{
    run_in_thread(fill_and_free, (void *)size);
    char *block = need(malloc(size));
    announce(block, block);
    read_bytes(block, size);
}

/* The bytes by which realloc has made a block longer are read, where another one was freed.
 * tiny, mid: reads data
 * large, big: reads data or reads zero
 * hardened tiny, mid: reads zero */
CASE(stale, tail_after_growing)
{
    char *blocks[5] = {NULL};
    for (int i = 0; i < 4; i++)
        blocks[i] = memset(need(malloc(2 * size)), 0x41, 2 * size);
    free_group(blocks);
    char *block = need(realloc(memset(need(malloc(size)), 0, size), 2 * size));
    announce(block, block);
    read_bytes(block + size, size);
}

/* A block is made shorter by realloc and as long as before: the bytes that it had lost are read.
 * all: reads data
 * hardened all: reads zero */
CASE(stale, tail_after_shrinking_and_growing)
{
    size_t shorter = size - size / 16;
    char *block = memset(need(malloc(size)), 0x41, size);
    block = need(realloc(block, shorter));
    block = need(realloc(block, size));
    announce(block, block);
    read_bytes(block + shorter, size - shorter);
}

/* The bytes that a block has beyond what was asked for are read.
 * tiny, big: reads data or reads zero
 * mid, large: reads data
 * hardened all: not applicable */
CASE(stale, usable_bytes_behind_the_request)
{
    char *freed = need(malloc(size));
    memset(freed, 0x41, malloc_usable_size(freed));
    free(freed);
    size -= size / 32 + 1;
    char *block = need(malloc(size));
    announce(block, block);
    if (malloc_usable_size(block) == size)
        not_applicable();
    read_bytes(block + size, malloc_usable_size(block) - size);
}
