/* The slow paths of malloc, calloc and free: see alloc.h for the hit paths. */
#include "api/alloc.h"

#include <errno.h>
#include <string.h>

#include "api/block.h"
#include "api/fallback.h"
#include "api/perturb.h"
#include "base/policy.h"
#include "slab/bin.h"
#include "slab/depot.h"
#include "span/purge.h"

static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* A block of one of the next larger classes in the thread's magazines, or NULL: it mostly costs no
 * fresh page. A class without a slab borrows its first blocks, since most classes of a small
 * program never need more; long blocks have been used, so borrowing them is always right, if not
 * much is wasted. */
static SLOW_PATH void *borrow_block(struct heap *heap, unsigned class)
{
    enum { LENDERS = 3 };
    if (!size_class_is_long(class) && !bin_may_borrow(heap->shard, class))
        return NULL;
    unsigned largest = class <= SIZE_COUNT ? SIZE_COUNT : CLASS_COUNT - 1;
    unsigned last = (unsigned)size_min(class + LENDERS, largest);
    for (unsigned lender = class + 1; lender <= last; lender++) {
        void *block = magazine_pop(&heap->area->front, lender);
        if (block) {
            COUNTER_ADD(&magazine_of(heap, lender)->counts.misses, 1);
            return block;
        }
    }
    return NULL;
}

/* A block of the class; NULL when no memory is left. */
static void *alloc_block(struct heap *heap, unsigned class, size_t alignment)
{
    class = size_class_for_shard(class, heap->shard);
    void *block = magazine_pop(&heap->area->front, class);
    if (!block && size_class_is_long(class))
        block = heap_refill(heap, class, false);
    if (!block && alignment <= MIN_ALIGNMENT && (block = borrow_block(heap, class)) != NULL)
        return block;
    if (!block)
        block = heap_refill(heap, class, true);
    if (LIKELY(block != NULL))
        COUNTER_ADD(&magazine_of(heap, class)->counts.misses, 1);
    return block;
}

static void *alloc_pages(size_t size, size_t alignment, bool zero)
{
    bool span = size <= SPAN_MAX && alignment <= SPAN_ALIGNMENT_MAX;
    void *block = span ? span_alloc(size, alignment, zero) : big_alloc(size, alignment, zero);
    if (UNLIKELY(!block) && purge_may_make_room(size_max(size, alignment)) && heap_purge())
        block = span ? span_alloc(size, alignment, zero) : big_alloc(size, alignment, zero);
    return block;
}

void *alloc_any(size_t size, size_t alignment, unsigned class, bool zero)
{
    if (UNLIKELY(size > SIZE_LIMIT || alignment > SIZE_LIMIT))
        return out_of_memory();
    struct heap *heap = heap_enter();
    if (UNLIKELY(!heap))
        return out_of_memory();
    /* Whole pages for no bytes are one page: the block must have an address of its own. */
    void *block = class ? alloc_block(heap, class, alignment)
                        : alloc_pages(size_max(size, 1), alignment, zero);
    heap_leave(heap);
    if (UNLIKELY(perturb_is_on()) && block && !zero)
        perturb_allocated(block, size);
    return block ? block : out_of_memory();
}

void *alloc_slow(size_t size)
{
    if (UNLIKELY(POLICY(fallback)))
        return libc_malloc(size);
    return alloc_any(size, MIN_ALIGNMENT, size <= MID_MAX ? size_class_of(size) : 0, false);
}

/* True when the block, just handed out, is known to be zero: it lies in a slab made of zero pages,
 * and has never been freed, or it would carry the mark of that. */
static bool is_zero(void *const *block)
{
    return !block[0] && ATOMIC_LOAD_RELAXED(&slab_lookup(block)->clean);
}

void *alloc_zeroed(size_t count, size_t size)
{
    size_t total;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &total)))
        return out_of_memory();
    if (UNLIKELY(POLICY(fallback)))
        return libc_calloc(count, size);
    if (total > MID_MAX)
        return alloc_any(total, MIN_ALIGNMENT, CLASS_NONE, true);
    void *block = alloc_hit(total);
    if (UNLIKELY(!block))
        block = alloc_any(total, MIN_ALIGNMENT, size_class_of(total), false);
    if (LIKELY(block != NULL) && (total <= TINY_MAX || !is_zero(block)))
        memset(block, 0, total);
    return block;
}

/* The block has been checked: a mark that it carries all the same does not matter. */
static void free_to_slab(struct heap *heap, const struct slab *slab, void **block)
{
    unsigned class = slab->class;
    COUNTER_ADD(&magazine_of(heap, class)->counts.overflows, 1);
    /* The slab is older than the wide class map: the next free of a block of it shall hit. */
    if (UNLIKELY(class_at(&heap->area->front, block) == CLASS_NONE) &&
        class_map_newest() != &class_map)
        slab_publish(slab);
    heap_put(heap, class, block);
}

/* No memory is left to give the thread a heap: the block goes straight to its slab. */
static void free_without_heap(const struct slab *slab, void *block)
{
    *(void **)block = class_map_newest()->classes;
    ATOMIC_ADD_RELAXED(&bin_of(slab->shard, slab->class)->direct_blocks, 1);
    bin_flush(slab->shard, slab->class, &block, 1);
}

/* Frees a block that came here only because the program has not written to its first word, which
 * is the mark still. Looks at the magazine again at the end: a signal handler may have filled it.
 */
static bool free_unwritten(void **block)
{
    struct heap_front *heap = thread_heap;
    unsigned class = class_at(heap, block);
    if (magazine_is_full(heap, class) || block[0] != heap->classes ||
        heap_suspects(heap_of_thread(), class, block, true) || magazine_is_full(heap, class))
        return false;
    magazine_put(heap, class, block);
    return true;
}

void free_slow(void *block)
{
    if (!block || free_unwritten(block))
        return;
    struct block_info info = block_find(block);
    if (UNLIKELY(info.kind == BLOCK_FOREIGN && POLICY(fallback))) {
        libc_free(block);
        return;
    }
    /* Only for its checks; those of spans and big blocks are made where they are freed. */
    if (info.kind == BLOCK_SLAB || info.kind == BLOCK_FOREIGN)
        block_usable_size(info, block, "free", true);
    /* A big block may be longer than the memory there is, and little of it touched. */
    if (UNLIKELY(perturb_is_on()) && info.kind != BLOCK_BIG)
        perturb_freed(block, block_usable_size(info, block, "free", true));
    struct heap *heap = heap_enter();
    if (info.kind == BLOCK_SLAB && LIKELY(heap != NULL))
        free_to_slab(heap, info.slab, block);
    else if (info.kind == BLOCK_SLAB)
        free_without_heap(info.slab, block);
    else if (info.kind == BLOCK_SPAN)
        span_free(info.superslab, block, "free");
    else
        big_free(info.big, block, "free");
    if (heap)
        heap_leave(heap);
}
