/* See span.h. */
#include "scope/span.h"

#include "base/bits.h"
#include "base/poison.h"
#include "base/policy.h"
#include "base/tuning.h"
#include "map/metadata.h"
#include "os/os.h"
#include "scope/cache.h"
#include "span/huge.h"

static struct list_node *unused; /* lock of the records: records of unmapped spans */

static uint32_t units_mask(unsigned first, unsigned units)
{
    return (uint32_t)bitmap_word_mask(0, first, units);
}

/* ---- Mappings -------------------------------------------------------------------------------- */

static struct span *take_span(void)
{
    lock_acquire(&scope_records_lock);
    struct span *span = span_by_node(unused);
    if (span)
        unused = unused->next;
    lock_release(&scope_records_lock);
    return span ? span : metadata_alloc(sizeof *span);
}

static void put_span(struct span *span)
{
    lock_acquire(&scope_records_lock);
    span->by_fullness.next = unused;
    KEEP_STORE_ORDER();
    unused = &span->by_fullness;
    lock_release(&scope_records_lock);
}

struct span *span_map(struct hakmem_scope *scope, size_t bytes, size_t alignment, bool huge)
{
    struct span *span = take_span();
    if (!span)
        return NULL;
    char *base = os_map(bytes, size_max(alignment, REGION_SIZE), NULL);
    if (!base || !page_map_prepare(base)) {
        if (base)
            os_discard(base, bytes);
        put_span(span);
        return NULL;
    }
    span->region.kind = REGION_SCOPE;
    ATOMIC_STORE_RELAXED(&span->region.base, base);
    ATOMIC_STORE_RELAXED(&span->scope, scope);
    span->bytes = bytes;
    span->huge = huge;
    span->listed = false;
    span->free_units = span->clean_units = UINT32_MAX;
    if (!span_is_block(span))
        poison(base, bytes);
    if (huge && POLICY(huge_pages))
        os_advise_huge_pages(base, bytes, true);
    else
        huge_refuse(base, bytes);
    page_map_register(&span->region);
    return span;
}

void span_unmap(struct span *span)
{
    char *base = span->region.base;
    page_map_unregister(&span->region);
    ATOMIC_STORE_RELAXED(&span->region.base, NULL);
    /* What the system refuses to unmap it is asked for again later. */
    if (!os_unmap(base, span->bytes))
        os_discard(base, span->bytes);
    put_span(span);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static void push_span(struct span *span)
{
    struct hakmem_scope *scope = span->scope;
    list_push(span->free_units ? &scope->open : &scope->full, &span->by_fullness);
}

static void add_span(const struct span *span, unsigned spans)
{
    struct hakmem_scope *scope = span->scope;
    if (!span_is_block(span))
        ATOMIC_STORE_RELAXED(&scope->spans, scope->spans + spans);
    if (span->free_units == UINT32_MAX)
        scope->empty += spans;
}

void span_list(struct span *span)
{
    span->listed = true;
    add_span(span, 1);
    push_span(span);
}

void span_unlist(struct span *span)
{
    span->listed = false;
    add_span(span, (unsigned)-1);
    list_remove(&span->by_fullness);
}

/* ---- Slabs ----------------------------------------------------------------------------------- */

/* Blocks of a slab: of one for samples no more than its record can have. */
static unsigned slab_length(unsigned size_class, bool sampled)
{
    enum { SAMPLES_MAX = 1024 };
    unsigned blocks = size_class ? slab_blocks_of(size_class) : 1;
    return sampled && blocks > SAMPLES_MAX ? SAMPLES_MAX : blocks;
}

static size_t record_bytes(unsigned size_class, bool sampled)
{
    unsigned blocks = slab_length(size_class, sampled);
    return sizeof(struct slab) + (blocks + 63u) / 64 * sizeof(uint64_t) +
           (sampled ? blocks * sizeof(struct sample *) : 0);
}

struct slab *span_make_record(unsigned size_class, bool sampled)
{
    struct slab *slab = metadata_alloc(record_bytes(size_class, sampled));
    if (!slab)
        return NULL;
    slab->size_class = (uint8_t)size_class;
    slab->shard = sampled ? slab_samples_shard : 0;
    slab->blocks = slab->free_blocks = (uint16_t)slab_length(size_class, sampled);
    bitmap_set_range(slab->free, 0, slab->blocks);
    return slab;
}

void span_free_record(struct slab *slab)
{
    metadata_free(slab, record_bytes(slab->size_class, slab_is_sampled(slab)));
}

size_t span_block_bytes(const struct slab *slab)
{
    return slab->size_class ? size_classes[slab->size_class].size : span_of(slab->base)->bytes;
}

struct list *span_slabs(struct hakmem_scope *scope, const struct slab *slab)
{
    return &scope->slabs[slab_is_sampled(slab)][slab->size_class];
}

void span_own_units(struct span *span, unsigned unit, struct slab *slab)
{
    unsigned units = span_units_of(slab);
    bool cached = cache_serves(slab->size_class) && !slab_is_sampled(slab);
    for (unsigned i = unit; i < unit + units; i++) {
        ATOMIC_STORE_RELAXED(&span->slab_of_unit[i], slab);
        ATOMIC_STORE_RELAXED(&span->class_of_unit[i], cached ? slab->size_class : CLASS_NONE);
    }
    span->free_units &= ~units_mask(unit, units);
    span->clean_units &= span->free_units;
}

/* Lets the slab begin at the unit. In a child of fork the first unit counts. */
static SLOW_PATH void start_slab_at(struct span *span, unsigned unit, struct slab *slab)
{
    uint32_t mask = units_mask(unit, span_units_of(slab));
    slab->base = span->region.base + unit * UNIT_SIZE;
    slab->clean = (span->clean_units & mask) == mask;
    KEEP_STORE_ORDER();
    add_span(span, (unsigned)-1);
    span_own_units(span, unit, slab);
    add_span(span, 1);
    list_push(span_slabs(span->scope, slab), &slab->by_fullness);
    if (!span->free_units) {
        list_remove(&span->by_fullness);
        push_span(span);
    }
}

bool span_start_block(struct span *span, struct slab *slab)
{
    start_slab_at(span, 0, slab);
    return true;
}

bool span_start_slab(struct hakmem_scope *scope, struct slab *slab, unsigned alignment)
{
    const struct size_class *layout = &size_classes[slab->size_class];
    alignment = (unsigned)size_max(alignment, layout->alignment);
    for (struct list_node *node = scope->open.first; node; node = node->next) {
        struct span *span = span_by_node(node);
        uint32_t starts = superslab_starts(span->free_units, layout->units, alignment);
        if (starts && !span_is_block(span)) {
            start_slab_at(span, bits_lowest(starts), slab);
            return true;
        }
    }
    return false;
}

struct span *span_end_slab(struct slab *slab)
{
    struct span *span = span_of(slab->base);
    unsigned unit = superslab_unit_of(slab->base), units = span_units_of(slab);
    list_remove(&slab->by_fullness);
    for (unsigned i = units; i-- > 0;)
        ATOMIC_STORE_RELAXED(&span->slab_of_unit[unit + i], NULL);
    for (unsigned i = 0; i < units; i++)
        ATOMIC_STORE_RELAXED(&span->class_of_unit[unit + i], CLASS_NONE);
    add_span(span, (unsigned)-1);
    list_remove(&span->by_fullness);
    span->free_units |= units_mask(unit, units);
    span_list(span);
    if (span->free_units != UINT32_MAX || (span->scope->empty == 1 && !span_is_block(span)))
        return NULL;
    span_unlist(span);
    return span;
}

/* ---- Any address in a span ------------------------------------------------------------------- */

/* The slab of the address; NULL: none lies there. */
static struct slab *slab_at(const void *address)
{
    return ATOMIC_LOAD_RELAXED(&span_of(address)->slab_of_unit[superslab_unit_of(address)]);
}

size_t scope_object(const void *address)
{
    const struct slab *slab = slab_at(address);
    unsigned index = slab ? slab_index_at(slab, address) : 0;
    bool is_block = slab && index < slab->blocks;
    return is_block ? bytes_left(slab_block(slab, index), span_block_bytes(slab), address) : 0;
}

struct sample **span_sample(struct slab *slab, const void *block)
{
    void **place = slab_is_sampled(slab) ? slab_sample(slab, slab_index_at(slab, block)) : NULL;
    return (struct sample **)place;
}

struct sample *scope_sample(const void *block)
{
    struct slab *slab = slab_at(block);
    struct sample **place = slab ? span_sample(slab, block) : NULL;
    return place ? ATOMIC_LOAD_RELAXED(place) : NULL;
}
