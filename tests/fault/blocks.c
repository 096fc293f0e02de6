/* See blocks.h. */
#include "blocks.h"

#include <errno.h>
#include <malloc.h>

#include "runtime_support.h"

enum { ERRNO_MARK = 4242, ALIGNMENT_LOG2_MAX = 16 };

size_t blocks_size(struct blocks *blocks, size_t least, size_t most)
{
    unsigned octaves = (unsigned)(__builtin_ctzl(most) - __builtin_ctzl(least));
    size_t low = least << random_next(&blocks->seed) % octaves;
    return low + random_next(&blocks->seed) % low;
}

/* All bytes of what is small, and 16 bytes of every page of what is not. */
static bool reads_as_zero(const unsigned char *bytes, size_t size)
{
    size_t step = size <= 8192 ? 16 : 4096;
    for (size_t at = 0; at < size; at += step)
        for (size_t i = at; i < at + 16 && i < size; i++)
            if (bytes[i])
                return false;
    return size == 0 || bytes[size - 1] == 0;
}

/* What is true of the result of every allocating call. */
static bool check_result(struct blocks *blocks, const void *result)
{
    REQUIRE(errno == (result ? ERRNO_MARK : ENOMEM));
    REQUIRE((uintptr_t)result % 16 == 0);
    blocks->refused += result == NULL;
    return result != NULL;
}

static void fill(struct blocks *blocks, struct block *block, void *start, size_t size)
{
    *block = (struct block){start, size, random_next(&blocks->seed)};
    pattern_fill(start, size, block->tag);
}

bool block_alloc(struct blocks *blocks, unsigned slot, size_t size)
{
    unsigned choice = random_next(&blocks->seed);
    size_t alignment = (size_t)16 << (choice >> 8) % (ALIGNMENT_LOG2_MAX - 3);
    errno = ERRNO_MARK;
    void *start = choice % 4 == 0   ? calloc(1, size)
                  : choice % 4 == 1 ? memalign(alignment, size)
                                    : malloc(size);
    if (!check_result(blocks, start))
        return false;
    REQUIRE(choice % 4 != 0 || reads_as_zero(start, size));
    REQUIRE(choice % 4 != 1 || (uintptr_t)start % alignment == 0);
    fill(blocks, &blocks->slot[slot], start, size);
    return true;
}

bool block_resize(struct blocks *blocks, unsigned slot, size_t size)
{
    struct block *block = &blocks->slot[slot];
    REQUIRE(pattern_holds(block->start, block->size, block->tag));
    errno = ERRNO_MARK;
    void *start = realloc(block->start, size);
    if (!check_result(blocks, start)) {
        REQUIRE(size > block->size);
        REQUIRE(pattern_holds(block->start, block->size, block->tag));
        return false;
    }
    /* The pattern of short blocks has no gaps, that of long ones has: look at what both share. */
    size_t kept = size < block->size ? size : block->size;
    for (size_t at = 0; at < kept; at += 512)
        REQUIRE(((unsigned char *)start)[at] == (unsigned char)block->tag);
    fill(blocks, block, start, size);
    return true;
}

void block_free(struct blocks *blocks, unsigned slot)
{
    struct block *block = &blocks->slot[slot];
    if (!block->start)
        return;
    REQUIRE(pattern_holds(block->start, block->size, block->tag));
    errno = ERRNO_MARK;
    free(block->start);
    REQUIRE(errno == ERRNO_MARK);
    block->start = NULL;
}

void blocks_work(
    struct blocks *blocks, unsigned operations, unsigned slots, size_t least, size_t most)
{
    for (unsigned i = 0; i < operations; i++) {
        unsigned slot = random_next(&blocks->seed) % slots;
        size_t size = blocks_size(blocks, least, most);
        if (!blocks->slot[slot].start)
            block_alloc(blocks, slot, size);
        else if (random_next(&blocks->seed) % 3)
            block_free(blocks, slot);
        else
            block_resize(blocks, slot, size);
    }
}

void blocks_check_all(struct blocks *blocks)
{
    for (unsigned slot = 0; slot < BLOCKS_MAX; slot++) {
        const struct block *block = &blocks->slot[slot];
        REQUIRE(!block->start || pattern_holds(block->start, block->size, block->tag));
    }
}

void blocks_free_all(struct blocks *blocks, unsigned kept_every)
{
    for (unsigned slot = 0; slot < BLOCKS_MAX; slot++)
        if (!kept_every || slot % kept_every)
            block_free(blocks, slot);
}
