/* Spans: the mappings that blocks of a scope lie in.
 *
 *     unit 0       1                31
 *     | slab     | free |  ..  | slab |          2 MiB, cut into runs of units as a superslab is
 *     | one block ................... |          or one block above 2 MiB, in a slab of class 0
 *
 * A span belongs to one scope until it is unmapped, and starts at a multiple of 2 MiB. Its record
 * serves as the record of another span after that and is never given back: a stale pointer to one
 * can be read.
 *
 * The lock of the scope's tree guards all fields that do not say otherwise.
 */
#ifndef SCOPE_SPAN_H
#define SCOPE_SPAN_H

#include "map/page_map.h"
#include "scope/tree.h"
#include "slab/slab.h"

enum { SPAN_UNITS = SUPERSLAB_UNITS };

struct span {
    struct region region;         /* const while registered; its base is NULL while it is not */
    struct hakmem_scope *scope;   /* const while registered; as the base, read by any cache */
    size_t bytes;                 /* const while registered */
    bool huge;                    /* const while registered: it may have huge pages */
    bool listed;                  /* false while a thread maps, resets or unmaps it */
    uint32_t free_units;          /* bit per unit */
    uint32_t clean_units;         /* of these: read as zero */
    struct list_node by_fullness; /* on one of the scope's lists while it is listed */
    struct slab *slab_of_unit[SPAN_UNITS]; /* atomic relaxed, read by any thread */
    uint8_t class_of_unit[SPAN_UNITS];     /* the same: of its slab, if caches take its blocks */
};

/* The span of an address in a region of a scope. */
ALWAYS_INLINE struct span *span_of(const void *address)
{
    return (struct span *)page_map_lookup(address);
}

/* True for that of a big block, which is longer than others. */
ALWAYS_INLINE bool span_is_block(const struct span *span)
{
    return span->bytes > REGION_SIZE;
}

/* Units of a slab of a scope in its span. */
ALWAYS_INLINE unsigned span_units_of(const struct slab *slab)
{
    return slab->size_class ? size_classes[slab->size_class].units : SPAN_UNITS;
}

/* Usable bytes of its blocks. */
SLOW_PATH size_t span_block_bytes(const struct slab *slab);

ALWAYS_INLINE struct span *span_by_node(struct list_node *node)
{
    return LIST_ENTRY(node, struct span, by_fullness);
}

/* Maps a span for the scope: for one block of that many bytes, or, if they are REGION_SIZE, for
 * slabs. It is registered, and on no list. NULL: no memory. To be called without locks. */
struct span *span_map(struct hakmem_scope *scope, size_t bytes, size_t alignment, bool huge);

/* Unmaps a span that is on no list, and ends its record. To be called without locks. */
void span_unmap(struct span *span);

/* Puts the span on its scope's list, and takes it off. */
void span_list(struct span *span);
void span_unlist(struct span *span);

/* Makes the record an empty slab in units of the scope that start at a multiple of so many; false:
 * no span has such units. */
bool span_start_slab(struct hakmem_scope *scope, struct slab *slab, unsigned alignment);

/* Makes the record the slab of the big block that has the span; true. */
bool span_start_block(struct span *span, struct slab *slab);

/* The list of slabs like this one with free blocks. */
struct list *span_slabs(struct hakmem_scope *scope, const struct slab *slab);

/* Enters the slab into its units, of which `unit` is the first, and takes these. */
void span_own_units(struct span *span, unsigned unit, struct slab *slab);

/* The place for the sample of a live block of the slab; NULL: it is none. */
struct sample **span_sample(struct slab *slab, const void *block);

/* Ends a slab without live blocks; its record is the caller's. Returns the span, if it has to be
 * unmapped since it has become empty and is not the scope's only empty one; else NULL. */
struct span *span_end_slab(struct slab *slab);

/* The record of a slab of the class, perhaps for samples (slab/slab.h), that is nowhere yet; NULL:
 * no memory. To be called without locks. */
struct slab *span_make_record(unsigned size_class, bool sampled);
void span_free_record(struct slab *slab);

#endif
