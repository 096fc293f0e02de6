/* realloc, aligned allocation and size queries, on top of alloc.c. */
#include <errno.h>

#include "api/alloc.h"
#include "api/block.h"
#include "api/fallback.h"
#include "base/policy.h"
#include "os/os.h"
#include "reclaim/engine.h"
#include "trace/trace.h"

/* A block of `length` bytes for a request of `size`. */
ALWAYS_INLINE void *take_aligned(size_t size, size_t length, size_t alignment)
{
    unsigned size_class = size_class_aligned(length, alignment);
    struct heap_front *heap = thread_heap;
    /* Of two twins, the thread's own. The static heap, of a thread without one, has no magazine but
     * that of class 0. */
    bool twin = size_class != CLASS_NONE && size_class <= TWINS;
    unsigned own = twin ? LOAD_HOT(&heap->tiny_class[size_classes[size_class].size]) : size_class;
    bool due = false;
    void *block = NULL;
    if (LOAD_HOT(&heap->classes_limit))
        block = size_class_is_long(own) ? magazine_pop_long(heap, own, &due)
                                        : magazine_pop(heap, own, &due);
    if (UNLIKELY(due))
        return alloc_due(block, size, alignment, false);
    return LIKELY(block != NULL) ? block : alloc_any(size, alignment, size_class, false);
}

/* Lets free look whether the program has advised the block's pages. A big one is always looked at.
 */
static void *let_advise(void *block)
{
    uint8_t *state = block ? superslab_find_state(block) : NULL;
    if (state && superslab_live_class(state, block))
        ATOMIC_STORE_RELAXED(state, BLOCK_ADVISABLE);
    return block;
}

void *alloc_aligned(size_t size, size_t alignment)
{
    if (alignment <= MIN_ALIGNMENT)
        return alloc(size);
    size_t length = alloc_aligned_size(size, alignment);
    void *block = take_aligned(size, length, alignment);
    return LIKELY(length == size) ? block : let_advise(block);
}

void *alloc_aligned_zeroed(size_t size, size_t alignment)
{
    if (alignment <= MIN_ALIGNMENT)
        return alloc_zeroed(1, size);
    size_t length = alloc_aligned_size(size, alignment);
    void *block = alloc_any(size, alignment, size_class_aligned(length, alignment), true);
    return length == size ? block : let_advise(block);
}

/* Usable bytes that a block of `size` bytes has in its tier. */
static size_t tier_size(size_t size)
{
    if (size <= LARGE_MAX)
        return size_classes[size_class_of(size)].size;
    return round_up(size, PAGE_SIZE) + os_page_size();
}

size_t alloc_good_size(size_t size, size_t alignment)
{
    /* Guarded blocks end at the requested size. */
    if (POLICY(sample_guards) || POLICY(fallback) || size > SIZE_LIMIT - PAGE_SIZE)
        return size;
    unsigned size_class = size_class_aligned(alloc_aligned_size(size, alignment), alignment);
    return size_class ? size_classes[size_class].size : tier_size(size);
}

/* Usable bytes of a live block of a slab; 0: it is none, or suspected to be free. Programs ask for
 * the size of a block before they write to it: then a mark says little, and `may_search` is false.
 */
ALWAYS_INLINE size_t usable_hit(const void *block, bool may_search)
{
    const struct heap_front *heap = thread_heap;
    unsigned size_class = class_at(heap, block);
    if (size_class == CLASS_NONE) {
        const uint8_t *state = superslab_find_state(block);
        size_t live = state ? superslab_live_class(state, block) : CLASS_NONE;
        return size_classes[live].size;
    }
    if (UNLIKELY(!size_class_starts_at(size_class, block)))
        return 0;
    if (UNLIKELY(magazine_finds_mark(heap, block)) &&
        heap_suspects(heap_of_thread(), size_class, block, may_search))
        return 0;
    return size_classes[size_class].size;
}

size_t alloc_usable_size(const void *block, const char *call)
{
    size_t usable = usable_hit(block, false);
    if (LIKELY(usable || !block))
        return usable;
    struct block_info info = block_find(block);
    if (UNLIKELY(info.kind == BLOCK_FOREIGN && POLICY(fallback)))
        return libc_usable_size(block);
    /* No search: the program may ask before it writes to the block. */
    return block_usable_size(info, block, call, false);
}

/* True if the block can stay in place: it is long enough, and a new one would be no shorter than
 * `least`. */
ALWAYS_INLINE bool fits_above(size_t usable, size_t size, size_t least)
{
    return size <= usable && (size >= least || tier_size(size) >= least);
}

/* True if it stays in any case: a move would save little. */
ALWAYS_INLINE bool fits_in_place(size_t usable, size_t size)
{
    return fits_above(usable, size, usable - usable / SHRINK_PART);
}

/* ---- Shrinking ------------------------------------------------------------------------------- */

/* A block that becomes shorter by more is copied, to give the rest of it back: programs fill a
 * buffer, cut it to its contents, and keep it. The copy was in vain if the block becomes as long as
 * before, or is freed at once: then those that come next stay, unless they lose more than a half.
 * That is seen of one block at a time, so a program in which it happens to many pays for as many
 * copies, and then for none for SHRINKS_SPARED times as long. */

static void end_watch(struct shrinks *shrinks, bool in_vain)
{
    if (in_vain)
        shrinks->spared = (shrinks->since + 1) * SHRINKS_SPARED;
    shrinks->watched = NULL;
}

/* Whether a block that shrinks should stay nevertheless. Only long blocks have a state that tells
 * that they were freed; a copy of others costs little. */
static bool is_spared(struct shrinks *shrinks)
{
    const uint8_t *state = shrinks->watched ? superslab_find_state(shrinks->watched) : NULL;
    if (state && ATOMIC_LOAD_RELAXED(state) == BLOCK_FREED)
        end_watch(shrinks, shrinks->since < SHRINKS_BRIEF);
    if (!shrinks->spared)
        return false;
    shrinks->spared--;
    return true;
}

/* After a block of `usable` bytes has moved for the sake of another size. */
static void watch_moved(const void *block, const void *moved, size_t usable, size_t size)
{
    struct heap *heap = heap_of_thread();
    if (!heap)
        return;
    struct shrinks *shrinks = &heap->shrinks;
    if (size > usable && block == shrinks->watched)
        end_watch(shrinks, size <= shrinks->usable);
    if (size >= usable / 2 && size < usable &&
        (!shrinks->watched || shrinks->since++ >= SHRINKS_WATCHED))
        *shrinks = (struct shrinks){.watched = moved, .usable = usable};
}

/* True if a block that does not fit well in place stays: it loses at most a half, and to move such
 * blocks was in vain. */
static bool stays_longer(size_t usable, size_t size)
{
    struct heap *heap = heap_of_thread();
    return heap && fits_above(usable, size, usable / 2) && is_spared(&heap->shrinks);
}

/* ---- realloc --------------------------------------------------------------------------------- */

/* The class that a block of `usable` bytes with a slab of its own can have in place; CLASS_NONE: it
 * has no such slab, or should move. */
static unsigned class_in_place(size_t usable, size_t size)
{
    if (!size_class_is_single(size_class_of(usable)) || size > LARGE_MAX)
        return CLASS_NONE;
    unsigned size_class = size_class_of(size);
    return size_class_is_single(size_class) ? size_class : CLASS_NONE;
}

/* True if the program may have advised the pages of the block. */
static bool is_advisable(struct block_info info, const void *block)
{
    bool long_block =
        info.kind == BLOCK_SLAB && info.slab && size_class_is_long(info.slab->size_class);
    return info.kind == BLOCK_BIG || (long_block && superslab_is_advisable(block));
}

/* Changes the size without copying; NULL: that is not possible. */
static void *resize_in_tier(struct block_info info, void *block, size_t usable, size_t size)
{
    void *result = NULL;
    /* A big block that crosses the border back and forth stays big: else it is copied each time. */
    bool stays_big = info.kind == BLOCK_BIG && size > LARGE_MAX / 2;
    bool advisable = !stays_big && is_advisable(info, block);
    /* Parts may not be readable, and the end may be all that shows the advice. */
    if (advisable && size <= usable && !os_is_one_mapping(block, usable))
        return block;
    bool has_slab = info.kind == BLOCK_SLAB || (info.kind == BLOCK_WATCHED && info.slab);
    unsigned size_class = has_slab && !advisable ? class_in_place(usable, size) : CLASS_NONE;
    if (!stays_big && !size_class)
        return NULL;
    struct heap *heap = heap_enter();
    if (!heap)
        return NULL;
    if (size_class && heap_resize(heap, slab_lookup(block), size_class))
        result = block;
    if (stays_big) {
        size = size_max(size, BIG_MIN) + os_page_size();
        result = big_resize(info.big, size);
        /* A copy takes more: free pages may be enough for what the block grows by. */
        if (UNLIKELY(!result) && !reclaim_has_room(size - usable)) {
            engine_give(GIVER_PAGES, SIZE_MAX);
            result = big_resize(info.big, size);
        }
    }
    heap_leave(heap);
    return result;
}

/* Whether the live block is a sample. Blocks that usable_hit found are none. */
static bool is_sample(struct block_info info, const void *block)
{
    return info.kind == BLOCK_WATCHED ||
           (info.kind == BLOCK_BIG && ATOMIC_LOAD_RELAXED(&info.big->sample)) ||
           (SCOPES && info.kind == BLOCK_SCOPED && scope_sample(block));
}

static void *in_place(bool sampled, const void *before, void *block, size_t size)
{
    struct heap *heap = heap_of_thread();
    if (LIKELY(heap != NULL))
        COUNTER_ADD(&heap->reallocs_in_place, 1);
    if (UNLIKELY(sampled))
        trace_now()->resized(before, block, size);
    return block;
}

static void *move_block(void *block, size_t usable, size_t size, size_t alignment)
{
    int kept = errno;
    /* Samples tell the requested size, and guards begin behind it. */
    size_t roomy = trace_samples() ? size : size_with_headroom(usable, size);
    void *moved = alloc_aligned(roomy, alignment);
    if (UNLIKELY(!moved && roomy > size))
        moved = alloc_aligned(size, alignment);
    if (UNLIKELY(!moved && (size > usable || (uintptr_t)block % alignment)))
        return NULL;
    errno = kept;
    /* No memory even for less: the block stays, and is longer than need be. */
    if (UNLIKELY(!moved))
        return block;
    /* One of the next larger classes has lent a block, and a copy would save nothing. */
    if (UNLIKELY(
            size < usable && alignment <= MIN_ALIGNMENT && usable_hit(moved, false) >= usable)) {
        release(moved);
        return block;
    }
    resize_move(moved, block, usable, size);
    watch_moved(block, moved, usable, size);
    return moved;
}

/* `usable`: the result of usable_hit. */
static __attribute__((noinline)) void *resize_block(void *block, size_t usable, size_t size)
{
    struct block_info info = {.kind = BLOCK_SLAB, .slab = NULL};
    if (!usable) {
        info = block_find(block);
        if (UNLIKELY(info.kind == BLOCK_FOREIGN && POLICY(fallback)))
            return libc_realloc(block, size);
        usable = block_usable_size(info, block, "realloc", true);
    }
    if (resize_ends(block, size))
        return NULL;
    bool sampled = is_sample(info, block);
    if (usable > MID_MAX) {
        /* Giving back less than an eighth would undo the headroom of the last step. */
        if (size <= usable && size > usable - usable / HEADROOM_PART)
            return in_place(sampled, block, block, size);
        void *resized = resize_in_tier(info, block, usable, size);
        if (resized)
            return in_place(sampled, block, resized, size);
    }
    if (info.kind != BLOCK_BIG && (fits_in_place(usable, size) || stays_longer(usable, size)))
        return in_place(sampled, block, block, size);
    return move_block(block, usable, size, MIN_ALIGNMENT);
}

void *alloc_resize(void *block, size_t size)
{
    if (!block)
        return alloc(size);
    size_t usable = usable_hit(block, true);
    bool stays = size - 1 < usable && usable <= MID_MAX && fits_in_place(usable, size);
    return LIKELY(stays) ? in_place(false, block, block, size) : resize_block(block, usable, size);
}

void *alloc_resize_aligned(void *block, size_t size, size_t alignment)
{
    if (alignment <= MIN_ALIGNMENT || !block)
        return block ? alloc_resize(block, size) : alloc_aligned(size, alignment);
    size_t usable = alloc_usable_size(block, "realloc");
    if ((uintptr_t)block % alignment == 0 && fits_in_place(usable, size))
        return in_place(is_sample(block_find(block), block), block, block, size);
    return move_block(block, usable, size, alignment);
}

size_t alloc_resize_in_place(void *block, size_t size)
{
    size_t usable = alloc_usable_size(block, "realloc");
    struct block_info info = block_find(block);
    if (info.kind == BLOCK_BIG || usable <= MID_MAX || size > LARGE_MAX)
        return usable;
    if (!resize_in_tier(info, block, usable, size))
        return usable;
    in_place(is_sample(info, block), block, block, size);
    return alloc_usable_size(block, "realloc");
}
