/* The slow paths of malloc, calloc and free: see alloc.h for the hit paths. */
#include "api/alloc.h"

#include <errno.h>
#include <string.h>

#include "api/block.h"
#include "api/fallback.h"
#include "api/perturb.h"
#include "api/watch.h"
#include "base/policy.h"
#include "base/probe.h"
#include "base/tuning.h"
#include "os/os.h"
#include "reclaim/engine.h"
#include "slab/shard.h"
#include "span/huge.h"
#include "thread/idle.h"
#include "thread/registry.h"

SLOW_PATH void *alloc_out_of_memory(size_t size)
{
    PROBE_1(oom, size);
    errno = ENOMEM;
    return NULL;
}

/* A block of one of the next larger classes in the thread's magazines, or NULL: it mostly costs no
 * fresh page. A class without a slab borrows its first blocks, since most classes of a small
 * program never need more. Long classes always borrow, since the pages of a cached block are there
 * already. But a class that always borrows would always miss: a large one, whose fresh blocks cost
 * only the pages that are touched, takes one now and then. */
static SLOW_PATH void *borrow_block(struct heap *heap, unsigned size_class)
{
    if (size_class_is_large(size_class) &&
        magazine_of(heap, size_class)->batches % BORROWED_IN_A_ROW == 0)
        return NULL;
    if (!size_class_is_long(size_class) && !bin_may_borrow(heap->shard, size_class))
        return NULL;
    unsigned largest = size_class <= SIZE_COUNT ? SIZE_COUNT : CLASS_COUNT - 1;
    unsigned last = (unsigned)size_min(size_class + LENDERS, largest);
    for (unsigned lender = size_class + 1; lender <= last; lender++) {
        void *block = heap_pop(heap, lender);
        if (block) {
            COUNTER_ADD(&magazine_of(heap, lender)->counts.misses, 1);
            return block;
        }
    }
    return NULL;
}

/* A block of the class; NULL: no memory is left. */
static void *take_classed(struct heap *heap, unsigned size_class, size_t alignment)
{
    size_class = size_class_for_shard(size_class, heap->shard);
    void *block = heap_pop(heap, size_class);
    if (!block && size_class_is_long(size_class))
        block = heap_refill(heap, size_class, false);
    if (!block && alignment <= MIN_ALIGNMENT && (block = borrow_block(heap, size_class)) != NULL)
        return block;
    if (!block)
        block = heap_refill(heap, size_class, true);
    if (LIKELY(block != NULL))
        COUNTER_ADD(&magazine_of(heap, size_class)->counts.misses, 1);
    return block;
}

/* Makes a block from a magazine or a slab live, and clears it if asked to. */
static void *hand_out(void *block, size_t size, bool zero)
{
    unsigned size_class = slab_lookup(block)->size_class, state = BLOCK_FREED;
    if (size_class_is_long(size_class)) {
        KEEP_STORE_ORDER(); /* as in magazine_pop_long */
        state = ATOMIC_LOAD_RELAXED(superslab_state_of(block));
        superslab_start_block(block, size_class);
    }
    if (zero)
        slab_clear(block, size, state);
    return block;
}

/* CLASS_NONE: the block is big, or its alignment needs a slab of its own. */
static void *take_any(
    struct heap *heap, size_t size, size_t alignment, unsigned size_class, bool zero)
{
    if (!size_class && (alloc_aligned_size(size, alignment) > LARGE_MAX || alignment > LARGE_MAX))
        return big_alloc(heap->shard, size + os_page_size(), alignment, zero);
    void *block = size_class ? take_classed(heap, size_class, alignment)
                             : heap_take_aligned(heap, size_class_single(size), alignment);
    bool may_be_long = !size_class || size_class + LENDERS >= LONG_CLASS_FIRST;
    return block && (zero || may_be_long) ? hand_out(block, size, zero) : block;
}

/* Replaces a block that is to be a sample. Blocks of a borrowed heap are not sampled. */
static void *sampled(
    struct heap *heap, void *block, size_t size, size_t alignment, bool zero,
    const struct trace_start *start)
{
    if (!block || heap != heap_of_thread())
        return block;
    if (heap->sample_class)
        return trace_now()->replace(block, size, alignment, zero, start);
    if (alloc_aligned_size(size, alignment) > LARGE_MAX || alignment > LARGE_MAX)
        trace_now()->big(block_find(block).big, size, start);
    return block;
}

void *alloc_any(size_t size, size_t alignment, unsigned size_class, bool zero)
{
    const struct trace_start start = TRACE_START();
    if (UNLIKELY(size > SIZE_LIMIT || alignment > SIZE_LIMIT))
        return alloc_out_of_memory(size);
    if (UNLIKELY(POLICY(fallback)))
        return libc_alloc(size, alignment, zero);
    bool scoped = scope_is_entered();
    struct heap *heap = scoped ? NULL : reclaim_enter();
    void *block = scoped ? scope_alloc(size, alignment, size_class, zero, &start) : NULL;
    if (LIKELY(heap != NULL)) {
        if (UNLIKELY(watch_is_called(heap)))
            watch_look(heap);
        block = take_any(heap, size, alignment, size_class, zero);
        for (unsigned effort = 0;
             UNLIKELY(!block) && reclaim_for(heap, size_max(size, alignment), effort); effort++)
            block = take_any(heap, size, alignment, size_class, zero);
        heap_leave(heap);
    }
    if (trace_samples() && !scoped)
        block = sampled(heap, block, size, alignment, zero, &start);
    if (UNLIKELY(perturb_is_on()) && block && !zero)
        perturb_allocated(block, size);
    return block ? block : alloc_out_of_memory(size);
}

static SLOW_PATH void look_for_observers(void)
{
    struct heap *heap = heap_enter();
    watch_look(heap);
    heap_leave(heap);
}

void *alloc_due(void *block, size_t size, size_t alignment, bool zero)
{
    const struct trace_start start = TRACE_START();
    struct heap *heap = heap_of_thread();
    heap_pop_due(heap, slab_lookup(block)->size_class);
    if (UNLIKELY(watch_is_called(heap)))
        look_for_observers();
    if (UNLIKELY(heap->sample_class))
        return trace_now()->replace(block, size, alignment, zero, &start);
    /* Looks after the purge if slow paths matter, and the clock has moved since the last look, or
     * the engine waits for somebody to go on. */
    if (idle_matters() && (os_clock_ms() != heap->parked_ms || pressure_waits()))
        heap_leave(heap_enter());
    return block;
}

void *alloc_zeroed(size_t count, size_t size)
{
    size_t total;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &total)))
        return alloc_out_of_memory(SIZE_MAX);
    if (total > LARGE_MAX)
        return alloc_any(total, MIN_ALIGNMENT, CLASS_NONE, true);
    struct heap_front *heap = thread_heap;
    bool due = false;
    void *block = total <= SHORT_MAX ? alloc_hit(heap, total, &due)
                                     : magazine_pop(heap, front_class(heap, total), &due);
    if (UNLIKELY(due)) {
        void *sample = alloc_due(block, total, MIN_ALIGNMENT, true);
        if (sample != block)
            return sample;
    }
    if (UNLIKELY(!block))
        return alloc_any(total, MIN_ALIGNMENT, size_class_of(total), true);
    return total <= SHORT_MAX ? memset(block, 0, total) : hand_out(block, total, true);
}

/* The block has been checked: a mark on it does not matter. */
static void free_to_slab(struct heap *heap, const struct slab *slab, void **block)
{
    unsigned size_class = slab->size_class;
    COUNTER_ADD(&magazine_of(heap, size_class)->counts.overflows, 1);
    /* The slab is older than the wide class map: lets the next free of one of its blocks hit. */
    if (UNLIKELY(class_at(&heap->area->front, block) == CLASS_NONE) &&
        class_map_newest() != &class_map && !size_class_is_long(size_class))
        slab_publish(slab);
    heap_put(heap, size_class, block);
}

/* Ends what the program gave to the block's pages, if it did, by fresh ones in their place. If the
 * system refuses these, it stays. */
static SLOW_PATH void end_advice(void *block, size_t size)
{
    if (!os_is_one_mapping(block, size) && os_map_anew(block, size))
        huge_refuse(block, size);
}

/* There is no memory for a heap: the block goes straight to its slab. */
static void free_without_heap(const struct slab *slab, void *block)
{
    if (size_class_is_long(slab->size_class))
        superslab_end_block(block);
    else
        *(mark *)block = class_map_mark(class_map_newest()->classes);
    ATOMIC_ADD_RELAXED(&bin_of(slab->shard, slab->size_class)->direct_blocks, 1);
    bin_flush(slab->shard, slab->size_class, &block, 1);
}

void free_slow(void *block)
{
    const struct trace_start start = TRACE_START();
    if (!block)
        return;
    struct block_info info = block_find(block);
    if (UNLIKELY(info.kind == BLOCK_FOREIGN && POLICY(fallback))) {
        libc_free(block);
        return;
    }
    if (SCOPES && UNLIKELY(info.kind == BLOCK_SCOPED)) {
        scope_free(block);
        return;
    }
    if (info.kind == BLOCK_SLAB)
        registry_preferred_shard = info.slab->shard;
    /* Big blocks are checked by big_free, and not filled by perturb_freed: one may be longer than
     * all memory. */
    size_t usable = info.kind != BLOCK_BIG ? block_usable_size(info, block, "free", true) : 0;
    if (UNLIKELY(perturb_is_on()))
        perturb_freed(block, usable);
    if (UNLIKELY(info.kind == BLOCK_WATCHED)) {
        trace_now()->free(block, &start);
        return;
    }
    bool single = info.kind == BLOCK_SLAB && size_class_is_single(info.slab->size_class);
    if (single && superslab_is_advisable(block))
        end_advice(block, usable);
    struct sample *sample = NULL;
    struct heap *heap = heap_enter();
    if (info.kind == BLOCK_BIG) {
        sample = big_end_sample(info.big, block);
        big_free(info.big, block, "free");
    } else if (LIKELY(heap != NULL)) {
        free_to_slab(heap, info.slab, block);
    } else {
        free_without_heap(info.slab, block);
    }
    if (heap) {
        idle_look_in_free(heap);
        heap_leave(heap);
    }
    if (UNLIKELY(sample != NULL))
        trace_now()->died(sample);
}
