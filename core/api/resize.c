/* realloc, aligned allocation and size queries: what is built on alloc.c. */
#include <errno.h>
#include <string.h>

#include "api/alloc.h"
#include "api/block.h"
#include "api/fallback.h"
#include "base/policy.h"

void *alloc_aligned(size_t size, size_t alignment)
{
    if (UNLIKELY(POLICY(fallback)))
        return libc_memalign(alignment, size);
    if (alignment <= MIN_ALIGNMENT)
        return alloc(size);
    unsigned class = size_class_aligned(size, alignment);
    struct heap_front *heap = thread_heap;
    /* The thread's own of two twins. The static heap of a thread without one has no magazines but
     * that of class 0. */
    bool twin = class != CLASS_NONE && class <= TWINS;
    unsigned own = twin ? LOAD_HOT(&heap->tiny_class[size_classes[class].size]) : class;
    void *block = LOAD_HOT(&heap->classes_limit) ? magazine_pop(heap, own) : NULL;
    return LIKELY(block != NULL) ? block : alloc_any(size, alignment, class, false);
}

/* Usable bytes that a block of `size` bytes has in its tier. */
static size_t tier_size(size_t size)
{
    if (size <= MID_MAX)
        return size_classes[size_class_of(size)].size;
    return round_up(size, PAGE_SIZE);
}

size_t alloc_good_size(size_t size)
{
    return size > SIZE_LIMIT - PAGE_SIZE ? size : tier_size(size);
}

/* True when the block is the one that this thread got last of its class: the slot above the top
 * names it still. Programs ask for the size of a block before they write to it. */
static bool just_allocated(const struct heap_front *heap, unsigned class, const void *block)
{
    void *const *top = heap->top[class];
    return top[1] == block && top[0] != block;
}

/* Usable bytes of what surely is a live block of a slab, else 0. With the mark of a freed block it
 * is surely live only if `just_allocated` says so, and that may err for once. */
static size_t usable_hit(const void *block, bool may_err)
{
    const struct heap_front *heap = thread_heap;
    unsigned class = class_at(heap, block);
    if (UNLIKELY(class == CLASS_NONE || !size_class_starts_at(class, block)))
        return 0;
    bool marked = *(void *const *)block == heap->classes;
    if (marked && !(may_err && just_allocated(heap, class, block)))
        return 0;
    return size_classes[class].size;
}

size_t alloc_usable_size(const void *block, const char *call)
{
    size_t usable = usable_hit(block, true);
    if (LIKELY(usable || !block))
        return usable;
    struct block_info info = block_find(block);
    if (UNLIKELY(info.kind == BLOCK_FOREIGN && POLICY(fallback)))
        return libc_usable_size(block);
    /* The program may ask before it writes to the block: the mark says little. */
    return block_usable_size(info, block, call, false);
}

/* True when the block can stay where it is: it is long enough, and not more than twice as long as a
 * new one would be. Shorter than that, moving it saves memory. */
static bool fits(size_t usable, size_t size)
{
    return size <= usable && tier_size(size) >= usable / 2;
}

/* Changes the size without moving bytes; NULL when that cannot be. */
static void *resize_in_tier(struct block_info info, void *block, size_t size)
{
    void *result = NULL;
    struct heap *heap = heap_enter();
    if (!heap)
        return NULL;
    if (info.kind == BLOCK_SPAN && span_resize(info.superslab, block, size))
        result = block;
    if (info.kind == BLOCK_BIG && size >= BIG_MIN)
        result = big_resize(info.big, size);
    heap_leave(heap);
    return result;
}

/* What to ask for when a block of whole pages has to move to grow: some room behind it, which costs
 * addresses but no memory, so that growing step by step does not copy at every step. */
static size_t with_headroom(size_t usable, size_t size)
{
    if (usable <= MID_MAX || size <= usable || size >= BIG_MIN)
        return size;
    return size_min(size + size / 8, SPAN_MAX);
}

static void *in_place(void *block)
{
    struct heap *heap = heap_of_thread();
    if (LIKELY(heap != NULL))
        COUNTER_ADD(&heap->reallocs_in_place, 1);
    return block;
}

static bool is_zero(const char *bytes, size_t count)
{
    const uint64_t zero = 0;
    return count >= sizeof zero && memcmp(bytes, &zero, sizeof zero) == 0 &&
           memcmp(bytes, bytes + sizeof zero, count - sizeof zero) == 0;
}

/* Touches no page of the target for what is zero in both. */
static void copy_sparse(char *to, const char *from, size_t count)
{
    for (size_t part; count; to += part, from += part, count -= part) {
        part = size_min(count, PAGE_SIZE);
        if (!is_zero(from, part) || !is_zero(to, part))
            memcpy(to, from, part);
    }
}

static void *move(void *block, size_t usable, size_t size)
{
    int kept = errno;
    void *moved = alloc(with_headroom(usable, size));
    if (UNLIKELY(!moved))
        moved = alloc(size);
    if (UNLIKELY(!moved && size > usable))
        return NULL;
    errno = kept;
    if (UNLIKELY(!moved))
        return block; /* no memory even for less: then more will have to do */
    /* Of a block of whole pages little may be in use. */
    if (usable > MID_MAX)
        copy_sparse(moved, block, size_min(usable, size));
    else
        memcpy(moved, block, size_min(usable, size));
    release(block);
    return moved;
}

void *alloc_resize(void *block, size_t size)
{
    if (!block)
        return alloc(size);
    struct block_info info = {.kind = BLOCK_SLAB};
    size_t usable = usable_hit(block, false);
    if (!usable) {
        info = block_find(block);
        if (UNLIKELY(info.kind == BLOCK_FOREIGN && POLICY(fallback)))
            return libc_realloc(block, size);
        usable = block_usable_size(info, block, "realloc", true);
    }
    if (size == 0) {
        release(block);
        return NULL;
    }
    if (UNLIKELY(size > SIZE_LIMIT)) {
        errno = ENOMEM;
        return NULL;
    }
    if (info.kind == BLOCK_SLAB && fits(usable, size))
        return in_place(block);
    if (info.kind != BLOCK_SLAB) {
        /* Giving back less than an eighth would undo the headroom of the last step. */
        if (size <= usable && size > usable - usable / 8)
            return in_place(block);
        void *resized = resize_in_tier(info, block, size);
        if (resized)
            return in_place(resized);
    }
    return move(block, usable, size);
}
