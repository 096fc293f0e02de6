/* Blocks that know what they hold: each operation checks what a program may rely on, whether it
 * succeeds or not. A failed call returns NULL with ENOMEM and changes nothing; a successful one and
 * every free keep errno; contents stay.
 *
 * Aborts with a line on standard error when something is wrong. Nothing here allocates by itself.
 *
 * Thread rule: a table belongs to one thread.
 */
#ifndef FAULT_BLOCKS_H
#define FAULT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BLOCKS_MAX = 2048 };

struct block {
    void *start; /* NULL: none */
    size_t size;
    unsigned tag; /* what it is filled with */
};

struct blocks {
    uint32_t seed; /* of the random choices; not 0 */
    unsigned refused;
    struct block slot[BLOCKS_MAX];
};

/* A size between the two, which are powers of two; all octaves are equally likely. */
size_t blocks_size(struct blocks *blocks, size_t least, size_t most);

/* Fills an empty slot by malloc, calloc or memalign, in turn; false when refused. */
bool block_alloc(struct blocks *blocks, unsigned slot, size_t size);

/* Changes the size of the slot's block; false when refused. */
bool block_resize(struct blocks *blocks, unsigned slot, size_t size);

/* Checks and frees the slot's block, if there is one. */
void block_free(struct blocks *blocks, unsigned slot);

/* So many operations on random ones of the first `slots` slots. */
void blocks_work(
    struct blocks *blocks, unsigned operations, unsigned slots, size_t least, size_t most);

void blocks_check_all(struct blocks *blocks);

/* Frees all but every `kept_every`th slot; 0: all. */
void blocks_free_all(struct blocks *blocks, unsigned kept_every);

#endif
