/* See front.h. */
#include "hardened/front.h"

#include <errno.h>
#include <string.h>

#include "api/alloc.h"
#include "api/watch.h"
#include "base/poison.h"
#include "base/pressure.h"
#include "base/probe.h"
#include "hardened/big.h"
#include "hardened/hold.h"
#include "os/os.h"
#include "reclaim/engine.h"
#include "slab/shard.h"
#include "thread/idle.h"
#include "trace/trace.h"

/* In the statistics, a block of no bytes counts as one of the shortest class. */
enum { ZERO_SIZE_CLASS = 1 };

struct block_info front_find(const void *pointer)
{
    const void *block = tags_strip(pointer);
    struct block_info info = block_find(block);
    /* Only short blocks have tags. */
    bool short_one =
        info.kind == BLOCK_GONE || (info.kind == BLOCK_SLAB && !word_is_large(info.slab));
    return block == pointer || short_one ? info : (struct block_info){.kind = BLOCK_FOREIGN};
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Makes a free block live, for the caller; returns its pointer. */
ALWAYS_INLINE void *make_live(struct held held, size_t size, size_t alignment, enum form form)
{
    struct slab *slab = held.slab;
    size_t index = word_index(slab, held.block), length = size_classes[slab->size_class].size;
    uint32_t *place = slab_word(slab, (unsigned)index), word = ATOMIC_LOAD_RELAXED(place);
    char *block = held.block;
    if (LIKELY(!word_is_large(slab))) {
        if (UNLIKELY(word == WORD_UNUSED))
            word_check_unused(block, length);
        else if (UNLIKELY(!bytes_are_zero(block, length)))
            fatal_pointer("malloc", DEFECT_WRITTEN, block, NULL, 0);
        *(uint64_t *)(block + length - CANARY_SIZE) = word_canary(slab, block);
        block = tags_give(
            block, size, index ? block - length : block,
            index + 1 < slab->blocks ? block + length : block, word_last_tag(word));
    }
    ATOMIC_STORE_RELEASE(place, word_live(size, size_max(alignment, MIN_ALIGNMENT), form));
    return block;
}

void front_refuse(
    struct slab *slab, const void *block, uint32_t word, enum form form, const char *call)
{
    slab_index(slab, block, call);
    if (word_state(word) != WORD_LIVE)
        fatal_pointer(call, DEFECT_DOUBLE_FREE, block, NULL, 0);
    /* The pointer of a former owner has another tag; a pointer without one was never handed out. */
    if (!tags_match(block))
        fatal_pointer(call, tags_of(block) ? DEFECT_DOUBLE_FREE : DEFECT_FOREIGN, block, NULL, 0);
    form_check(block, word, form, call);
    tags_ignore();
    bool begins = word_start_is_whole(slab, tags_strip(block));
    fatal_pointer(call, begins ? DEFECT_OVERFLOW : DEFECT_UNDERFLOW, block, NULL, 0);
}

/* Whether the block is live, a function of that kind may free it, and the bytes behind it and right
 * before it are as they were. */
ALWAYS_INLINE bool is_right(struct slab *slab, const void *pointer, uint32_t word, enum form form)
{
    const void *block = tags_strip(pointer);
    if ((UNLIKELY(!word_fits(word, form)) && !form_is_excused(word, form)) ||
        UNLIKELY(!tags_match(pointer)))
        return false;
    tags_ignore();
    bool is_whole = LIKELY(word_end_is_whole(slab, block, word_size(word))) &&
                    LIKELY(word_start_is_whole(slab, block));
    tags_heed();
    return is_whole;
}

/* The free of the block. If two threads free it, one of them finds it free, and aborts; so does a
 * pointer at which no block starts. Returns its former word. */
ALWAYS_INLINE uint32_t make_freed(struct slab *slab, void *block, enum form form)
{
    size_t index = word_index(slab, block);
    if (UNLIKELY(index >= slab->blocks))
        slab_refuse(slab, block, "free");
    uint32_t *place = slab_word(slab, (unsigned)index);
    uint32_t word = __atomic_exchange_n(place, word_freed(block), __ATOMIC_ACQ_REL);
    if (UNLIKELY(!is_right(slab, block, word, form)))
        front_refuse(slab, block, word, form, "free");
    return word;
}

uint32_t front_word_of(struct slab *slab, const void *block, enum form form, const char *call)
{
    uint32_t word = ATOMIC_LOAD_ACQUIRE(slab_word(slab, slab_index(slab, block, call)));
    if (UNLIKELY(!is_right(slab, block, word, form)))
        front_refuse(slab, block, word, form, call);
    return word;
}

/* ---- The slow way ---------------------------------------------------------------------------- */

unsigned front_class_for(size_t size, size_t alignment)
{
    unsigned size_class = size <= MID_MAX && alignment <= MID_MAX ? word_class(size, alignment)
                                                                  : (unsigned)CLASS_NONE;
    return size_class - 1 < MID_CLASS_LAST ? size_class : large_class(size, alignment);
}

static void *take_from_shard(struct heap *heap, unsigned size_class, size_t alignment)
{
    unsigned units = (unsigned)(alignment >> UNIT_SHIFT);
    void *block = NULL;
    heap_take(heap, HARDENED_SHARD, size_class, &block, 1, units);
    return block;
}

/* If the system refuses to open a block, tries others; the refused ones go back at the end, or they
 * would be taken again. */
static void *take_large(struct heap *heap, unsigned size_class, size_t size, size_t alignment)
{
    enum { TRIES = 32 };
    void *refused[TRIES], *opened = NULL;
    unsigned count = 0;
    while (!opened && count < TRIES &&
           (refused[count] = take_from_shard(heap, size_class, alignment)) != NULL) {
        opened = large_open(slab_lookup(refused[count]), size, alignment);
        count += !opened;
    }
    for (unsigned i = 0; i < count; i++)
        bin_flush(HARDENED_SHARD, size_class, &refused[i], 1);
    return opened;
}

/* Takes a big block; if there is no memory, ends the waiting of others. */
static void *take_big(struct heap *heap, size_t size, size_t alignment, enum form form)
{
    struct big *big = big_fenced_make(heap->shard, size, alignment);
    if (UNLIKELY(!big)) {
        big_fenced_release();
        big = big_fenced_make(heap->shard, size, alignment);
    }
    if (!big)
        return NULL;
    unpoison(big->region.base, big->mapped);
    pressure_taken(big->mapped, true);
    big->word = form_of_big(size, alignment, form);
    return big->region.base;
}

/* CLASS_NONE: as a big block. */
static void *take_live(
    struct heap *heap, unsigned size_class, size_t size, size_t alignment, enum form form)
{
    if (!size_class)
        return take_big(heap, size, alignment, form);
    void *block = size_class_is_large(size_class) ? take_large(heap, size_class, size, alignment)
                                                  : take_from_shard(heap, size_class, alignment);
    return block ? make_live((struct held){block, slab_lookup(block)}, size, alignment, form)
                 : NULL;
}

/* The statistics count the block in the class `counted`. If that is another class, the block is to
 * be a sample, for which no memory is made. */
static void *take_slowly(
    struct heap *heap, unsigned size_class, unsigned counted, size_t size, size_t alignment,
    enum form form)
{
    void *block = size == 0 && size_class ? zero_size_take(alignment, form) : NULL;
    if (block)
        counted = ZERO_SIZE_CLASS;
    else
        block = take_live(heap, size_class, size, alignment, form);
    for (unsigned effort = 0; UNLIKELY(!block) && counted == size_class &&
                              reclaim_for(heap, size_max(size, alignment), effort);
         effort++)
        block = take_live(heap, size_class, size, alignment, form);
    if (block && size_class)
        heap_count_take(heap, counted);
    return block;
}

static SLOW_PATH void *alloc_slowly(
    unsigned size_class, unsigned counted, size_t size, size_t alignment, enum form form)
{
    struct heap *heap = reclaim_enter();
    if (UNLIKELY(!heap))
        return NULL;
    hold_open(heap);
    if (UNLIKELY(watch_is_called(heap)))
        watch_look(heap);
    void *block = take_slowly(heap, size_class, counted, size, alignment, form);
    heap_leave(heap);
    return block;
}

static void count_freed(struct heap *heap, unsigned size_class)
{
    if (LIKELY(heap != NULL))
        heap_count_free(heap, size_class);
    else
        ATOMIC_ADD_RELAXED(&bin_of(HARDENED_SHARD, size_class)->direct_blocks, 1);
}

/* Ends the sample of a freed block, and returns it; NULL: none. */
static struct sample *end_sample(struct slab *slab, const void *block)
{
    if (LIKELY(!word_sample(slab)))
        return NULL;
    struct sample *sample = word_set_sample(slab, NULL);
    PROBE_OTEL(1, free, block);
    return sample;
}

static struct sample *free_in_slab(
    struct heap *heap, struct slab *slab, void *pointer, enum form form)
{
    uint32_t word = make_freed(slab, pointer, form);
    struct sample *sample = end_sample(slab, pointer);
    count_freed(heap, sample ? sample->size_class : slab->size_class);
    if (word_is_large(slab)) {
        large_end(slab, word_size(word));
    } else {
        void *block = tags_strip(pointer);
        tags_clear(block, size_classes[slab->size_class].size);
        bin_flush(slab->shard, slab->size_class, &block, 1);
    }
    return sample;
}

static struct sample *free_big(struct big *big, void *block, enum form form)
{
    big_size(big, block, "free");
    form_check(block, big->word, form, "free");
    struct sample *sample = big_end_sample(big, block);
    if (UNLIKELY(!big_cache_retire(big, block)))
        big_size(big, block, "free"); /* another thread was first, and this one aborts */
    else
        big_fenced_end(big, "free");
    return sample;
}

static void free_zero_size(struct heap *heap, void *block, enum form form)
{
    zero_size_check(block, "free");
    uint32_t word = word_live(0, MIN_ALIGNMENT, zero_size_form(block));
    form_check(block, word, form & FORM_ANY, "free");
    zero_size_free(block);
    count_freed(heap, ZERO_SIZE_CLASS);
}

static SLOW_PATH void free_slowly(void *pointer, enum form form)
{
    struct sample *sample = NULL;
    if (!pointer)
        return;
    struct block_info info = front_find(pointer);
    bool zero_size = zero_size_covers(pointer);
    if (UNLIKELY(info.kind != BLOCK_SLAB && info.kind != BLOCK_BIG && !zero_size))
        block_refuse(info, pointer, "free");
    struct heap *heap = heap_enter();
    if (LIKELY(heap != NULL))
        hold_open(heap);
    if (UNLIKELY(zero_size))
        free_zero_size(heap, pointer, form);
    else if (info.kind == BLOCK_SLAB)
        sample = free_in_slab(heap, info.slab, pointer, form);
    else
        sample = free_big(info.big, pointer, form);
    if (heap) {
        idle_look_in_free(heap);
        heap_leave(heap);
    }
    if (UNLIKELY(sample != NULL))
        trace_now()->died(sample);
}

/* ---- malloc and free ------------------------------------------------------------------------- */

/* Here threads whose hold serves all calls notice an observer of samples. */
static SLOW_PATH struct held take_and_look(struct hold *hold, unsigned size_class)
{
    struct heap *heap = UNLIKELY(watch_is_called(hold->heap)) ? heap_enter() : NULL;
    if (heap) {
        watch_look(heap);
        heap_leave(heap);
    }
    return hold_take_slowly(hold, size_class);
}

static void *alloc_unsampled(size_t size, size_t alignment, enum form form)
{
    if (LIKELY(size - 1 < MID_MAX - CANARY_SIZE)) {
        unsigned size_class = word_class(size, alignment);
        struct hold *hold;
        if (LIKELY(size_class - 1 < MID_CLASS_LAST) && LIKELY((hold = hold_begin()) != NULL)) {
            struct held held = hold_take(hold, size_class);
            if (UNLIKELY(!held.block))
                held = take_and_look(hold, size_class);
            void *block = held.block ? make_live(held, size, alignment, form) : NULL;
            hold_end(hold);
            if (LIKELY(block != NULL))
                return block;
        }
    }
    void *block = NULL;
    if (LIKELY(size <= SIZE_LIMIT && alignment <= SIZE_LIMIT)) {
        unsigned size_class = front_class_for(size, alignment);
        block = alloc_slowly(size_class, size_class, size, alignment, form);
    }
    return LIKELY(block != NULL) ? block : alloc_out_of_memory(size);
}

/* A sampled block of the class, or NULL. It is a large one, however short, since the record of a
 * slab of one block has room for the sample. Blocks of no bytes are not sampled. */
static void *alloc_sample(
    unsigned size_class, size_t size, size_t alignment, enum form form,
    const struct trace_start *start)
{
    bool large = size_class_is_large(size_class);
    unsigned place = large ? size_class : large_class(size, alignment);
    struct sample *sample = size && place ? trace_now()->decide(size, size_class, start) : NULL;
    if (LIKELY(!sample))
        return NULL;
    void *block = alloc_slowly(place, size_class, size, alignment, form);
    if (UNLIKELY(!block)) {
        trace_now()->drop(sample);
        return NULL;
    }
    word_set_sample(slab_lookup(block), sample);
    trace_now()->begin(sample, block, size);
    return block;
}

static SLOW_PATH void *alloc_and_sample(size_t size, size_t alignment, enum form form)
{
    const struct trace_start start = TRACE_START();
    unsigned size_class = front_class_for(size, alignment);
    void *block = size_class ? alloc_sample(size_class, size, alignment, form, &start) : NULL;
    if (block)
        return block;
    block = alloc_unsampled(size, alignment, form);
    if (!size_class && block)
        trace_now()->big(block_find(block).big, size, &start);
    return block;
}

void *hardened_alloc(size_t size, size_t alignment, enum form form)
{
    return trace_samples() ? alloc_and_sample(size, alignment, form)
                           : alloc_unsampled(size, alignment, form);
}

void hardened_free(void *pointer, enum form form)
{
    void *block = tags_strip(pointer);
    struct slab *slab = slab_find(block);
    struct hold *hold;
    if (UNLIKELY(!slab) || UNLIKELY(word_is_large(slab)) ||
        UNLIKELY((hold = hold_begin()) == NULL)) {
        free_slowly(pointer, form);
        return;
    }
    make_freed(slab, pointer, form);
    tags_clear(block, size_classes[slab->size_class].size);
    hold_put(hold, (struct held){block, slab});
    hold_end(hold);
}

/* Big blocks need no extra room, and small ones come from the thread's hold. */
void *front_alloc_roomy(size_t before, size_t size, const struct trace_start *start)
{
    size_t roomy = before > MID_MAX ? size_with_headroom(before, size) : size;
    unsigned size_class =
        roomy > size ? front_class_for(roomy, MIN_ALIGNMENT) : (unsigned)CLASS_NONE;
    void *block = NULL;
    if (!size_class)
        return NULL;
    if (trace_samples())
        block = alloc_sample(size_class, size, MIN_ALIGNMENT, FORM_MALLOC, start);
    return block ? block : alloc_slowly(size_class, size_class, size, MIN_ALIGNMENT, FORM_MALLOC);
}
