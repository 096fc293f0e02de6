/* A slab: units of address space that hold blocks of one size class.
 *
 * The record lies outside the slab, with one bit a block (1 = free). Blocks are taken lowest
 * address first, so that those allocated together lie together and fresh pages are touched one by
 * one:
 *
 *     base                      watermark
 *     | block 0 | block 1 | ... |  pages untouched                            |
 *     free:  0 1 0 0 1 ...        1 1 1 1 1 1 1 1 1 ...
 *
 * A slab belongs to the bin (shard, class) it was made for until it is destroyed. A slab of a
 * single block may become longer or shorter, and then belongs to another class, while the block is
 * in use. Slabs of one shard hold sampled blocks (trace/); all slabs of the hardened library are in
 * another (hardened/word.h). No class map knows either, so free leaves its hit path, and their
 * records have a pointer or a word for each block.
 *
 * Pure data structure except for creation, destruction and resizing; the bin's lock guards every
 * field not marked otherwise.
 */
#ifndef SLAB_SLAB_H
#define SLAB_SLAB_H

#include "hardened.h"
#include "span/superslab.h"

struct unit_run;

struct slab {
    struct list_node by_fullness; /* on one of the bin's lists unless no block is free */
    char *base; /* const, but in slabs of large hardened blocks, whose owner sets it */
    struct superslab *superslab; /* const */
    uint8_t size_class;          /* const, but for the owner of a single block, who may resize it */
    uint8_t shard;               /* const */
    bool attached;               /* to the bin; else a thread makes, resizes or ends it */
    bool clean;                  /* const: all pages read as zero at its creation */
    uint8_t fullness;            /* the bin's list that it is on: 0 is the fullest */
    uint16_t blocks;             /* const */
    uint16_t free_blocks;
    uint16_t first_word;   /* no bit is set in words of `free` below this one */
    uint16_t watermark;    /* blocks from here on were neither handed out nor populated */
    uint64_t clean_grains; /* bit per grain (slab_grain): was clean, and no block taken since */
    uint64_t free[];
};

/* The shard whose slabs are of samples; 0: there is none. Atomic relaxed, any thread. */
extern uint8_t slab_samples_shard;

ALWAYS_INLINE bool slab_shard_is_sampled(unsigned shard)
{
    return shard && shard == ATOMIC_LOAD_RELAXED(&slab_samples_shard);
}

ALWAYS_INLINE bool slab_is_sampled(const struct slab *slab)
{
    return slab_shard_is_sampled(slab->shard);
}

/* Blocks of a slab of the class. */
ALWAYS_INLINE unsigned slab_blocks_of(unsigned size_class)
{
    return HARDENED ? hardened_slab_blocks(size_class) : size_classes[size_class].blocks;
}

/* The pointer for the block of that index in a slab of samples; NULL while the block is free.
 * Atomic, owner of the block. */
ALWAYS_INLINE void **slab_sample(struct slab *slab, unsigned index)
{
    void **samples = (void **)&slab->free[(slab->blocks + 63u) / 64];
    return &samples[index];
}

/* A slab of the class for shard `shard`, all blocks free, registered in the class map. It starts at
 * a multiple of its size, or, with a single block, at one of `alignment` units. NULL: no memory, or
 * none without mapping more, unless `may_grow`. Takes the page heap's lock. */
struct slab *slab_create(unsigned size_class, unsigned shard, unsigned alignment, bool may_grow);

/* Gives the pages of a slab whose blocks are all free back to the page heap. */
void slab_destroy(struct slab *slab);

/* Gives the slab of the caller's single block another class of such slabs, in place; false: the
 * units behind it are not free. Takes the page heap's lock. */
bool slab_resize(struct slab *slab, unsigned size_class);

/* Enters a slab of short blocks into the class maps, for a caller that owns one of them. */
void slab_publish(const struct slab *slab);

/* Slab that covers the address; NULL: none does. Any thread. */
ALWAYS_INLINE struct slab *slab_find(const void *address)
{
    uintptr_t entry = page_map_find(address);
    if (!(entry & ENTRY_SUPERSLAB))
        return NULL;
    struct superslab *superslab = (struct superslab *)page_map_region(entry);
    return ATOMIC_LOAD_ACQUIRE(&superslab->slab_of_unit[superslab_unit_of(address)]);
}

/* slab_find as a call, for paths where that costs little. */
struct slab *slab_lookup(const void *address);

/* Zeroes a block that its caller just got: all of it, unless it is longer than CLEARED_WHOLE and
 * `state`, its own until then, is BLOCK_UNUSED; then parts known to be zero stay as they are. */
void slab_clear(void *block, size_t size, unsigned state);

/* Memory inside slabs goes back to the system in pieces of this many bytes: at least a page, of
 * hakmem and of the system, and a 64th of the slab. */
size_t slab_grain(const struct slab *slab);

/* Free blocks below the watermark: those that were handed out before, or populated. */
ALWAYS_INLINE unsigned slab_used_blocks(const struct slab *slab)
{
    return (unsigned)slab->free_blocks - (slab->blocks - slab->watermark);
}

/* Takes up to `count` free blocks of the lowest addresses into `blocks`, the lowest one last;
 * returns how many. */
unsigned slab_take(struct slab *slab, void **blocks, unsigned count);

/* For a new slab: counts its clean grains. Those of a single block count as taken, since it will be
 * touched at once. */
void slab_count_clean(struct slab *slab, const struct unit_run *taken);

/* Adds to the clean grains; takes away from them; takes away those of `count` blocks from `first`
 * on. */
void slab_add_clean(struct slab *slab, uint64_t grains);
void slab_take_clean(struct slab *slab, uint64_t grains);
void slab_touch(struct slab *slab, unsigned first, unsigned count);

/* Bytes of clean grains, in all slabs. Any thread. */
size_t slab_clean_bytes(void);

/* The block of that index. */
ALWAYS_INLINE char *slab_block(const struct slab *slab, size_t index)
{
    return slab->base + index * size_classes[slab->size_class].size;
}

/* Index of the block that the address in the slab, with or without a tag, lies in; slab->blocks or
 * more: it lies behind the last one. */
unsigned slab_index_at(const struct slab *slab, const void *address);

/* Index of the block that starts at `address`. Aborts, naming the API function `call`, if none
 * does. */
unsigned slab_index(const struct slab *slab, const void *address, const char *call);

/* Whether each of the blocks, freed as blocks of the class, can be the start of one. */
bool slab_are_starts(unsigned size_class, void *const *blocks, unsigned count);

/* Marks the blocks free, up to the first that is free already or no start of a block of this slab;
 * returns how many. */
unsigned slab_put(struct slab *slab, void *const *blocks, unsigned count);

/* Aborts, naming the API function `call`, because of a block that slab_put refused. To be called
 * without locks: a handler of SIGABRT may allocate. */
_Noreturn SLOW_PATH void slab_refuse(const struct slab *slab, const void *block, const char *call);

/* Makes the counts and bounds anew, from the bitmap. */
void slab_repair(struct slab *slab);

#endif
