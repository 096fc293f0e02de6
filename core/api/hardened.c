/* See hardened.h. */
#include "api/hardened.h"

#include <errno.h>
#include <string.h>

#include "api/alloc.h"
#include "api/block.h"
#include "api/nothing.h"
#include "base/assert.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "base/sparse.h"
#include "map/fence.h"
#include "os/os.h"
#include "os/tags.h"
#include "profile/sample.h"
#include "slab/shard.h"
#include "span/big_fenced.h"
#include "thread/hold.h"
#include "thread/idle.h"

/* For the statistics no bytes are a block of the shortest class. */
enum { NOTHING_CLASS = 1 };

void hardened_start(void)
{
    struct heap *heap;
    if (!POLICY(hardened) || POLICY(fallback))
        return;
    /* Shards are counted with the first heap. */
    if ((heap = heap_enter()) == NULL)
        return;
    heap_leave(heap);
    bytes_start();
    fence_prepare();
    if (!shard_prepare_hardened())
        return;
    tags_start();
    idle_stay_parked(true);
    /* Parks this thread's. */
    if ((heap = heap_enter()) != NULL)
        heap_leave(heap);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Larger blocks have slabs of their own (slab/large.h), and do not wait in the thread's hold. */
static bool is_large(const struct slab *slab)
{
    return size_class_is_large(slab->size_class);
}

/* A block that nobody has is the caller's from now on; returns its pointer. */
ALWAYS_INLINE void *start(struct held held, size_t size, size_t alignment, enum form form)
{
    struct slab *slab = held.slab;
    size_t index = word_index(slab, held.block), length = size_classes[slab->size_class].size;
    uint32_t *place = slab_word(slab, (unsigned)index), word = ATOMIC_LOAD_RELAXED(place);
    char *block = held.block;
    if (LIKELY(word_has_canary(slab->size_class))) {
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

/* What is wrong with the block, whose word was that. */
static _Noreturn SLOW_PATH void fatal_block(
    struct slab *slab, const void *block, uint32_t word, enum form form, const char *call)
{
    slab_index(slab, block, call);
    if (word_state(word) != WORD_LIVE)
        fatal_pointer(call, DEFECT_DOUBLE_FREE, block, NULL, 0);
    /* The pointer of who had the block before has another tag; one without was never handed out. */
    if (!tags_match(block))
        fatal_pointer(call, tags_of(block) ? DEFECT_DOUBLE_FREE : DEFECT_FOREIGN, block, NULL, 0);
    hardened_check_form(block, word, form, call);
    tags_ignore();
    bool begins = word_start_is_whole(slab, tags_strip(block));
    fatal_pointer(call, begins ? DEFECT_OVERFLOW : DEFECT_UNDERFLOW, block, NULL, 0);
}

/* Whether it is the word of a live block that such a function may free, and all behind the block
 * and right before it is as it was. */
ALWAYS_INLINE bool is_right(struct slab *slab, const void *pointer, uint32_t word, enum form form)
{
    const void *block = tags_strip(pointer);
    if (UNLIKELY(!word_fits(word, form)) || UNLIKELY(!tags_match(pointer)))
        return false;
    tags_ignore();
    bool is_whole = LIKELY(word_end_is_whole(slab, block, word_size(word))) &&
                    LIKELY(word_start_is_whole(slab, block));
    tags_heed();
    return is_whole;
}

/* Of two threads that free the block one finds that it is free. Aborts when no block starts there.
 * Returns what its word was. */
ALWAYS_INLINE uint32_t end(struct slab *slab, void *block, enum form form)
{
    size_t index = word_index(slab, block);
    if (UNLIKELY(index >= slab->blocks))
        slab_refuse(slab, block, "free");
    uint32_t *place = slab_word(slab, (unsigned)index);
    uint32_t word = __atomic_exchange_n(place, word_freed(block), __ATOMIC_ACQ_REL);
    if (UNLIKELY(!is_right(slab, block, word, form)))
        fatal_block(slab, block, word, form, "free");
    return word;
}

/* The word of what has to be such a block. */
static uint32_t word_of(struct slab *slab, const void *block, enum form form, const char *call)
{
    uint32_t word = ATOMIC_LOAD_ACQUIRE(slab_word(slab, slab_index(slab, block, call)));
    if (UNLIKELY(!is_right(slab, block, word, form)))
        fatal_block(slab, block, word, form, call);
    return word;
}

/* ---- The slow way ---------------------------------------------------------------------------- */

/* CLASS_NONE: it has to be a big block. */
static unsigned class_for(size_t size, size_t alignment)
{
    unsigned size_class = size <= MID_MAX && alignment <= MID_MAX ? word_class(size, alignment)
                                                                  : (unsigned)CLASS_NONE;
    return size_class - 1 < MID_CLASS_LAST ? size_class : large_class(size, alignment);
}

static void *take_block(unsigned size_class, size_t alignment)
{
    unsigned shard = slab_hardened_shard, units = (unsigned)(alignment >> UNIT_SHIFT);
    void *block = NULL;
    if (units > 1) {
        block = bin_take_aligned(shard, size_class, units, false);
        return block ? block : bin_take_aligned(shard, size_class, units, true);
    }
    for (enum refill cost = REFILL_USED; cost <= REFILL_MAP; cost++)
        if (bin_refill(shard, size_class, &block, 1, cost))
            return block;
    return NULL;
}

/* Where the system refuses to open a block, others are tried; those go back at the end, or they
 * would be taken again. */
static void *take_large(unsigned size_class, size_t size, size_t alignment)
{
    enum { TRIES = 32 };
    void *refused[TRIES], *opened = NULL;
    unsigned count = 0;
    while (!opened && count < TRIES &&
           (refused[count] = take_block(size_class, alignment)) != NULL) {
        opened = large_open(slab_lookup(refused[count]), size, alignment);
        count += !opened;
    }
    for (unsigned i = 0; i < count; i++)
        bin_flush(slab_hardened_shard, size_class, &refused[i], 1);
    return opened;
}

static void *take(unsigned size_class, size_t size, size_t alignment)
{
    return size_class_is_large(size_class) ? take_large(size_class, size, alignment)
                                           : take_block(size_class, alignment);
}

/* For the statistics it is a block of the class `counted`. */
static void *take_slowly(
    struct heap *heap, unsigned size_class, unsigned counted, size_t size, size_t alignment,
    enum form form)
{
    void *block = NULL;
    if (size == 0 && (block = hardened_take_nothing(heap, alignment, form)) != NULL)
        return block;
    block = take(size_class, size, alignment);
    /* A sample that lies elsewhere than its class can be none. */
    if (UNLIKELY(!block) && counted == size_class) {
        hardened_release();
        heap_flush(heap);
        reclaim_everything();
        block = take(size_class, size, alignment);
    }
    if (UNLIKELY(!block))
        return NULL;
    heap_count_take(heap, counted);
    return start((struct held){block, slab_lookup(block)}, size, alignment, form);
}

/* CLASS_NONE: as a big block. */
static SLOW_PATH void *alloc_slowly(
    unsigned size_class, unsigned counted, size_t size, size_t alignment, enum form form)
{
    void *block = NULL;
    struct heap *heap = heap_enter();
    if (LIKELY(heap != NULL)) {
        hold_open(heap);
        if (UNLIKELY(sample_should_look(heap)))
            sample_look_around(heap);
        block = size_class ? take_slowly(heap, size_class, counted, size, alignment, form)
                           : alloc_big(heap, size, alignment, true);
        heap_leave(heap);
    }
    if (!size_class && block)
        hardened_start_big(block, alignment, form);
    return block;
}

static void count_free(struct heap *heap, unsigned size_class)
{
    if (LIKELY(heap != NULL))
        heap_count_free(heap, size_class);
    else
        ATOMIC_ADD_RELAXED(&bin_of(slab_hardened_shard, size_class)->direct_blocks, 1);
}

void hardened_free_slow(struct slab *slab, void *pointer, enum form form)
{
    struct heap *heap = heap_enter();
    if (LIKELY(heap != NULL))
        hold_open(heap);
    uint32_t word = end(slab, pointer, form);
    struct sample *sample = sample_free_hardened(slab, pointer);
    count_free(heap, sample ? sample->size_class : slab->size_class);
    if (is_large(slab)) {
        large_end(slab, word_size(word));
    } else {
        void *block = tags_strip(pointer);
        tags_clear(block, size_classes[slab->size_class].size);
        bin_flush(slab->shard, slab->size_class, &block, 1);
    }
    if (heap)
        heap_leave(heap);
    if (UNLIKELY(sample != NULL))
        sample_bury(sample);
}

void *hardened_take_nothing(struct heap *heap, size_t alignment, enum form form)
{
    void *nothing = nothing_take(alignment, form);
    if (LIKELY(nothing != NULL))
        heap_count_take(heap, NOTHING_CLASS);
    return nothing;
}

void hardened_free_nothing(struct heap *heap, void *nothing, enum form form)
{
    uint32_t word = word_live(0, MIN_ALIGNMENT, nothing_form(nothing));
    hardened_check_form(nothing, word, form & FORM_ANY, "free");
    nothing_free(nothing);
    count_free(heap, NOTHING_CLASS);
}

void hardened_flush(void)
{
    struct hold *hold = hold_begin();
    if (!hold)
        return;
    hold_flush(hold);
    hold_end(hold);
}

void hardened_release(void)
{
    hardened_flush();
    large_release(0);
    big_fenced_release(0);
}

void hardened_stop(void)
{
    /* What is free may be much, and without memory. */
    static const size_t look_max = 16 * MIB;
    if (!hardened_is_on())
        return;
    /* At first: a slab that runs empty, as what the thread holds goes home, is gone. */
    struct heap *heap = heap_enter();
    bin_look(slab_hardened_shard, look_max);
    large_look();
    if (heap)
        heap_leave(heap);
    hardened_flush();
}

/* ---- malloc and free ------------------------------------------------------------------------- */

/* An observer of samples is noticed here by threads that hold all that they need. */
static SLOW_PATH struct held take_and_look(struct hold *hold, unsigned size_class)
{
    struct heap *heap = UNLIKELY(sample_should_look(hold->heap)) ? heap_enter() : NULL;
    if (heap) {
        sample_look_around(heap);
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
            void *block = held.block ? start(held, size, alignment, form) : NULL;
            hold_end(hold);
            if (LIKELY(block != NULL))
                return block;
        }
    }
    void *block = NULL;
    if (LIKELY(size <= SIZE_LIMIT && alignment <= SIZE_LIMIT)) {
        unsigned size_class = class_for(size, alignment);
        block = alloc_slowly(size_class, size_class, size, alignment, form);
    }
    return LIKELY(block != NULL) ? block : alloc_out_of_memory(size);
}

/* A block of the class, which is a sample, or NULL. It is a large one, however short, since the
 * record of a slab of one block has room for that. Blocks of no bytes are none. */
static void *alloc_sample(
    unsigned size_class, size_t size, size_t alignment, enum form form,
    const struct unwind_start *start)
{
    bool large = size_class_is_large(size_class);
    unsigned place = large ? size_class : large_class(size, alignment);
    struct sample *sample = size && place ? sample_decide(size, size_class, start) : NULL;
    if (LIKELY(!sample))
        return NULL;
    void *block = alloc_slowly(place, size_class, size, alignment, form);
    if (UNLIKELY(!block)) {
        sample_drop(sample);
        return NULL;
    }
    word_set_sample(slab_lookup(block), sample);
    sample_begin(sample, block, size);
    return block;
}

static SLOW_PATH void *alloc_and_sample(size_t size, size_t alignment, enum form form)
{
    const struct unwind_start start = UNWIND_START();
    unsigned size_class = class_for(size, alignment);
    void *block = size_class ? alloc_sample(size_class, size, alignment, form, &start) : NULL;
    if (block)
        return block;
    block = alloc_unsampled(size, alignment, form);
    if (!size_class && block)
        sample_big(block_find(block).big, size, &start);
    return block;
}

static bool samples_are_on(void)
{
    return UNLIKELY(ATOMIC_LOAD_RELAXED(&due_round) != 0);
}

void *hardened_alloc(size_t size, size_t alignment, enum form form)
{
    return samples_are_on() ? alloc_and_sample(size, alignment, form)
                            : alloc_unsampled(size, alignment, form);
}

void hardened_free(void *pointer, enum form form)
{
    void *block = tags_strip(pointer);
    struct slab *slab = slab_find(block);
    struct hold *hold;
    if (UNLIKELY(!slab) || UNLIKELY(!slab_is_hardened(slab)) || UNLIKELY(is_large(slab)) ||
        UNLIKELY((hold = hold_begin()) == NULL)) {
        free_by(pointer, form);
        return;
    }
    end(slab, pointer, form);
    tags_clear(block, size_classes[slab->size_class].size);
    hold_put(hold, (struct held){block, slab});
    hold_end(hold);
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

size_t hardened_size(struct slab *slab, const void *block, const char *call)
{
    return word_size(word_of(slab, block, FORM_ANY, call));
}

/* The live block, whose word is that, is so long from now on, as if realloc had moved it; what it
 * loses is zero. NULL: a large one cannot grow where it is. */
static void *change_size(struct slab *slab, void *block, uint32_t word, size_t size)
{
    uint32_t changed = word_live(size, MIN_ALIGNMENT, FORM_MALLOC);
    uint32_t *place = slab_word(slab, (unsigned)word_index(slab, block));
    size_t before = word_size(word);
    if (is_large(slab)) {
        if (!large_resize(slab, before, size))
            return NULL;
    } else if (size < before) {
        size_t ragged = size_min(round_up(size, sizeof(uint64_t)), before) - size;
        memset((char *)block + size, 0, ragged);
        sparse_clear(
            (char *)block + size + ragged,
            round_up(before, sizeof(uint64_t)) - round_up(size, sizeof(uint64_t)));
    }
    if (UNLIKELY(!__atomic_compare_exchange_n(
            place, &word, changed, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)))
        fatal_block(slab, block, word, FORM_ANY, "realloc");
    if (!is_large(slab))
        tags_resize(block, before, size);
    struct sample *sample = word_sample(slab);
    if (UNLIKELY(sample != NULL))
        sample_resize(sample, block, block, size);
    return block;
}

/* Whether a block of so many bytes should lie where this one is: it is long enough, and not more
 * than twice as long as a new one would be. A sample is as long as what it stands for. */
static bool fits(struct slab *slab, size_t size)
{
    const struct sample *sample = word_sample(slab);
    unsigned size_class = class_for(size, MIN_ALIGNMENT);
    size_t length = size_classes[sample ? sample->size_class : slab->size_class].size;
    size_t wanted = size_classes[size_class].size;
    return size_class && wanted <= length && wanted >= length / 2;
}

/* A block for what was shorter, in a class that it can grow in. Big blocks need none, and small
 * ones come from the thread's hold. */
static void *alloc_roomy(size_t before, size_t size)
{
    size_t roomy = size_with_headroom(before, size);
    unsigned size_class = roomy > size ? class_for(roomy, MIN_ALIGNMENT) : (unsigned)CLASS_NONE;
    void *block = NULL;
    if (!size_class)
        return NULL;
    const struct unwind_start start = UNWIND_START();
    if (samples_are_on())
        block = alloc_sample(size_class, size, MIN_ALIGNMENT, FORM_MALLOC, &start);
    return block ? block : alloc_slowly(size_class, size_class, size, MIN_ALIGNMENT, FORM_MALLOC);
}

void hardened_shorten(struct slab *slab, void *block, size_t size)
{
    change_size(slab, block, word_of(slab, block, FORM_ANY, "realloc"), size);
}

void *hardened_resize(struct slab *slab, void *block, size_t size)
{
    ASSERT(block);
    uint32_t word = word_of(slab, block, FORM_MALLOC, "realloc");
    size_t before = word_size(word), copied = size_min(before, size);
    int kept = errno;
    void *moved = fits(slab, size) ? change_size(slab, block, word, size) : NULL;
    if (LIKELY(moved != NULL))
        return moved;
    moved = alloc_roomy(before, size);
    if (!moved)
        moved = hardened_alloc(size, MIN_ALIGNMENT, FORM_MALLOC);
    if (UNLIKELY(!moved) && size > before)
        return NULL;
    errno = kept;
    /* No memory even for less: then more will have to do. */
    if (UNLIKELY(!moved))
        return change_size(slab, block, word, size);
    /* Of a block of whole pages little may be in use. */
    size_t sparse = copied > MID_MAX ? round_down(copied, sizeof(uint64_t)) : 0;
    sparse_copy(moved, block, sparse, SPARSE_TO_ZEROES);
    memcpy((char *)moved + sparse, (char *)block + sparse, copied - sparse);
    sample_moves(true);
    hardened_free(block, FORM_MALLOC);
    sample_moves(false);
    return moved;
}
