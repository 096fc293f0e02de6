/* realloc and sizes in the hardened library, where a block is as long as its request. It replaces
 * api/resize.c and api/object.c, and of api/alloc.c the failing call and calloc, which is malloc
 * here. */
#include <errno.h>
#include <string.h>

#include "api/alloc.h"
#include "base/poison.h"
#include "base/probe.h"
#include "base/sparse.h"
#include "hardened/big.h"
#include "hardened/front.h"
#include "os/fatal.h"
#include "trace/trace.h"

/* ---- Calls of api/alloc.h, but realloc ------------------------------------------------------- */

void *alloc_out_of_memory(size_t size)
{
    PROBE_1(oom, size);
    errno = ENOMEM;
    return NULL;
}

void *alloc_aligned(size_t size, size_t alignment)
{
    return hardened_alloc(size, alignment, FORM_MALLOC);
}

void *alloc_zeroed(size_t count, size_t size)
{
    size_t total;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &total)))
        return alloc_out_of_memory(SIZE_MAX);
    return alloc(total);
}

void *alloc_aligned_zeroed(size_t size, size_t alignment)
{
    return alloc_aligned(size, alignment);
}

size_t alloc_good_size(size_t size, size_t alignment)
{
    (void)alignment;
    return size;
}

size_t alloc_usable_size(const void *block, const char *call)
{
    if (!block)
        return 0;
    struct block_info info = front_find(block);
    if (info.kind == BLOCK_SLAB)
        return word_size(front_word_of(info.slab, block, FORM_ANY, call));
    if (info.kind == BLOCK_BIG)
        return big_size(info.big, block, call) - word_size(info.big->word);
    if (!zero_size_covers(block))
        block_refuse(info, block, call);
    zero_size_check(block, call);
    return 0;
}

size_t alloc_object_size(const void *address)
{
    static const char call[] = "malloc_object_size";
    struct block_info info = front_find(address);
    const char *start = address;
    if (!address || zero_size_covers(address))
        return 0;
    if (info.kind == BLOCK_GONE || (info.kind == BLOCK_BIG && !info.big->live))
        fatal_pointer(call, DEFECT_DOUBLE_FREE, address, NULL, 0);
    if (info.kind == BLOCK_BIG) {
        start = info.big->region.base;
    } else if (info.kind == BLOCK_SLAB) {
        unsigned index = slab_index_at(info.slab, address);
        if (index >= info.slab->blocks)
            return 0;
        start = tags_like(slab_block(info.slab, index), address);
    } else {
        return SIZE_MAX;
    }
    size_t size = alloc_usable_size(start, call);
    if ((uintptr_t)tags_strip(address) - (uintptr_t)tags_strip(start) > size)
        fatal_pointer(call, DEFECT_FOREIGN, address, NULL, 0);
    return bytes_left(start, size, address);
}

size_t alloc_object_size_fast(const void *address)
{
    if (!address || zero_size_covers(address))
        return 0;
    const struct slab *slab = slab_lookup(tags_strip(address));
    return slab ? size_classes[slab->size_class].size : SIZE_MAX;
}

/* ---- realloc --------------------------------------------------------------------------------- */

/* Gives the live block with that word another size in place, as if realloc had moved it; bytes that
 * it loses become zero. NULL: a large block cannot grow in place. */
static void *change_size(struct slab *slab, void *block, uint32_t word, size_t size)
{
    uint32_t changed = word_live(size, MIN_ALIGNMENT, FORM_MALLOC);
    uint32_t *place = slab_word(slab, (unsigned)word_index(slab, block));
    size_t before = word_size(word);
    if (word_is_large(slab)) {
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
        front_refuse(slab, block, word, FORM_ANY, "realloc");
    if (!word_is_large(slab))
        tags_resize(block, before, size);
    if (UNLIKELY(word_sample(slab) != NULL))
        trace_now()->resized(block, block, size);
    return block;
}

/* True if a block of `size` bytes should stay in this slab: the block is long enough, and at most
 * twice as long as a new one would be. A sample is as long as the block it stands for. */
static bool fits_slab(struct slab *slab, size_t size)
{
    const struct sample *sample = word_sample(slab);
    unsigned size_class = front_class_for(size, MIN_ALIGNMENT);
    size_t length = size_classes[sample ? sample->size_class : slab->size_class].size;
    size_t wanted = size_classes[size_class].size;
    return size_class && wanted <= length && wanted >= length / 2;
}

/* In place, or moved by the system; NULL: no memory, and the block is unchanged. */
static void *resize_big(struct big *big, void *before, size_t size)
{
    bool sampled = ATOMIC_LOAD_RELAXED(&big->sample) != NULL;
    struct heap *heap = heap_enter();
    struct big *resized = big_fenced_resize(big, size);
    if (LIKELY(heap != NULL)) {
        if (resized)
            COUNTER_ADD(&heap->reallocs_in_place, 1);
        heap_leave(heap);
    }
    if (!resized)
        return NULL;
    void *block = resized->region.base;
    unpoison(block, resized->mapped);
    resized->word = form_of_big(size, MIN_ALIGNMENT, FORM_MALLOC);
    if (UNLIKELY(sampled))
        trace_now()->resized(before, block, size);
    return block;
}

/* Moves a block of `usable` bytes to `moved` or, if that is NULL, to another of that size; without
 * memory, shrinks it in place. */
static void *move_or_shrink(void *block, void *moved, size_t usable, size_t size, size_t alignment)
{
    int kept = errno;
    if (!moved)
        moved = alloc_aligned(size, alignment);
    if (UNLIKELY(!moved) && (size > usable || (uintptr_t)block % alignment))
        return NULL;
    errno = kept;
    if (LIKELY(moved != NULL)) {
        resize_move(moved, block, usable, size);
        return moved;
    }
    /* No memory even for less. */
    struct block_info info = front_find(block);
    if (info.kind == BLOCK_BIG)
        resize_big(info.big, block, size);
    else if (info.kind == BLOCK_SLAB)
        change_size(info.slab, block, front_word_of(info.slab, block, FORM_ANY, "realloc"), size);
    return block;
}

static void *resize_in_slab(struct slab *slab, void *block, size_t size)
{
    const struct trace_start start = TRACE_START();
    uint32_t word = front_word_of(slab, block, FORM_MALLOC, "realloc");
    size_t before = word_size(word);
    void *stays = fits_slab(slab, size) ? change_size(slab, block, word, size) : NULL;
    if (LIKELY(stays != NULL))
        return stays;
    int kept = errno;
    void *moved = front_alloc_roomy(before, size, &start);
    errno = kept;
    return move_or_shrink(block, moved, before, size, MIN_ALIGNMENT);
}

void *alloc_resize(void *block, size_t size)
{
    if (!block)
        return alloc(size);
    struct block_info info = front_find(block);
    if (info.kind == BLOCK_SLAB && size)
        return resize_in_slab(info.slab, block, size);
    size_t usable = alloc_usable_size(block, "realloc");
    if (info.kind == BLOCK_BIG)
        form_check(block, info.big->word, FORM_MALLOC, "realloc");
    if (resize_ends(block, size))
        return NULL;
    /* A big block that crosses the border back and forth stays big: else it is copied each time. */
    void *resized =
        info.kind == BLOCK_BIG && size > LARGE_MAX / 2 ? resize_big(info.big, block, size) : NULL;
    return resized ? resized : move_or_shrink(block, NULL, usable, size, MIN_ALIGNMENT);
}

void *alloc_resize_aligned(void *block, size_t size, size_t alignment)
{
    if (alignment <= MIN_ALIGNMENT || !block)
        return block ? alloc_resize(block, size) : alloc_aligned(size, alignment);
    size_t usable = alloc_usable_size(block, "realloc");
    bool stays = (uintptr_t)block % alignment == 0 && size == usable;
    return stays ? block : move_or_shrink(block, NULL, usable, size, alignment);
}

/* The size is part of the block's record, and stays. */
size_t alloc_resize_in_place(void *block, size_t size)
{
    (void)size;
    return alloc_usable_size(block, "realloc");
}
