/* Classifies pointers from the caller: every function that gets one asks here. */
#ifndef API_BLOCK_H
#define API_BLOCK_H

#include "scope/scope.h"
#include "slab/slab.h"
#include "span/big.h"
#include "span/page_heap.h"
#include "trace/trace.h"

/* BLOCK_GONE: an address in a superslab, but in no slab. BLOCK_WATCHED: a sample of the default
 * library, which trace/ knows; `slab` is its slab, or NULL. BLOCK_SCOPED: in a region of scope/. */
enum block_kind { BLOCK_FOREIGN, BLOCK_GONE, BLOCK_SLAB, BLOCK_BIG, BLOCK_WATCHED, BLOCK_SCOPED };

struct block_info {
    enum block_kind kind;
    union {
        struct slab *slab;
        struct big *big;
    };
};

ALWAYS_INLINE struct block_info block_find(const void *block)
{
    struct region *region = page_map_lookup(block);
    if (!region) {
        bool watched = trace_now() && trace_now()->covers(block);
        return (struct block_info){.kind = watched ? BLOCK_WATCHED : BLOCK_FOREIGN};
    }
    if (region->kind == REGION_BIG)
        return (struct block_info){
            .kind = big_covers((struct big *)region, block) ? BLOCK_BIG : BLOCK_FOREIGN,
            .big = (struct big *)region};
    if (SCOPES && region->kind == REGION_SCOPE)
        return (struct block_info){.kind = BLOCK_SCOPED};
    struct slab *slab = slab_lookup(block);
    enum block_kind kind = !slab ? BLOCK_GONE : slab_is_sampled(slab) ? BLOCK_WATCHED : BLOCK_SLAB;
    return (struct block_info){.kind = kind, .slab = slab};
}

/* Aborts, naming the API function `call`, because of a foreign or gone pointer. */
_Noreturn SLOW_PATH void block_refuse(struct block_info info, const void *block, const char *call);

/* Usable bytes of a block of ours. Aborts, naming the API function `call`, if it is foreign, not
 * the start of a block, or free. Only a search, made if `may_search`, tells whether a short block
 * was freed long ago. */
size_t block_usable_size(
    struct block_info info, const void *block, const char *call, bool may_search);

#endif
