/* What a pointer from the caller is: the one place that every function asks which gets one. */
#ifndef API_BLOCK_H
#define API_BLOCK_H

#include "api/nothing.h"
#include "os/tags.h"
#include "profile/guard.h"
#include "slab/slab.h"
#include "span/big.h"
#include "span/page_heap.h"

/* BLOCK_GONE: what lay there was freed, and nothing lies there now. BLOCK_NOTHING: no bytes, of the
 * hardened preset. */
enum block_kind { BLOCK_FOREIGN, BLOCK_GONE, BLOCK_SLAB, BLOCK_BIG, BLOCK_GUARDED, BLOCK_NOTHING };

struct block_info {
    enum block_kind kind;
    union {
        struct slab *slab;
        struct big *big;
        struct guard *guard;
    };
};

/* Of a pointer with a tag: only short blocks of the hardened preset have one. */
static inline struct block_info block_find_tagged(const void *pointer)
{
    const void *block = tags_strip(pointer);
    const struct region *region = page_map_lookup(block);
    if (!region || region->kind == REGION_BIG ||
        ((const struct superslab *)region)->part != page_heap_fenced())
        return (struct block_info){.kind = BLOCK_FOREIGN};
    struct slab *slab = slab_lookup(block);
    if (slab && size_class_is_large(slab->size_class))
        return (struct block_info){.kind = BLOCK_FOREIGN};
    return (struct block_info){.kind = slab ? BLOCK_SLAB : BLOCK_GONE, .slab = slab};
}

ALWAYS_INLINE struct block_info block_find(const void *block)
{
    if (UNLIKELY(tags_of(block) != 0))
        return block_find_tagged(block);
    struct region *region = page_map_lookup(block);
    if (!region && guard_covers(block))
        return (struct block_info){.kind = BLOCK_GUARDED, .guard = guard_of(block)};
    if (!region)
        return (struct block_info){.kind = nothing_covers(block) ? BLOCK_NOTHING : BLOCK_FOREIGN};
    if (region->kind == REGION_BIG)
        return (struct block_info){
            .kind = big_covers((struct big *)region, block) ? BLOCK_BIG : BLOCK_FOREIGN,
            .big = (struct big *)region};
    struct slab *slab = slab_lookup(block);
    return (struct block_info){.kind = slab ? BLOCK_SLAB : BLOCK_GONE, .slab = slab};
}

/* Usable bytes of a block of ours. Aborts, naming the API function `call`, when it is foreign, not
 * the start of a block, or free. A block of a slab that was freed some time ago is found only by a
 * search, if that may be. */
size_t block_usable_size(
    struct block_info info, const void *block, const char *call, bool may_search);

#endif
