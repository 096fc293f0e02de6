/* The hit paths of malloc and free: a screen of straight code each, without a call.
 *
 * Both are inlined into every exported form of malloc or free (override/), so that none jumps to
 * another. Each miss is a tail call.
 */
#ifndef API_ALLOC_H
#define API_ALLOC_H

#include <errno.h>

#include "hardened.h"
#include "os/os.h"
#include "thread/heap.h"

/* Sizes above this are refused with ENOMEM: no address space holds them. */
#define SIZE_LIMIT ((size_t)1 << ADDRESS_BITS)

/* The misses: any size, an empty or full magazine, a thread without a heap, the C library as
 * fallback. alloc_slow returns NULL with ENOMEM; errno is kept otherwise. */
void *alloc_slow(size_t size) __attribute__((noinline, hot));
SLOW_PATH void free_slow(void *block);

/* After a due pop: does maintenance that hits would never do. Returns `block`, not zeroed, or the
 * sample that takes its place, zeroed if `zero`. */
SLOW_PATH void *alloc_due(void *block, size_t size, size_t alignment, bool zero);

/* The hit paths of long blocks, which go on to those above. Not inlined: programs work longer on
 * such a block than a jump takes. */
void *alloc_long(size_t size, struct heap_front *heap);
void free_long(void *block, struct heap_front *heap);

/* free of a short block with the mark, if its magazine has room: it was freed before or, mostly,
 * the program has not written to its first word. */
void free_marked(void *block, struct heap_front *heap);

/* free of a pointer outside the class map, or of any while the heap is closed. */
void free_far(void *block, struct heap_front *heap);

/* A block of at least `size` bytes: of `size_class` or a larger one, or, if that is CLASS_NONE, at
 * a multiple of `alignment`; zeroed if `zero`. NULL and ENOMEM: there is no memory. */
void *alloc_any(size_t size, size_t alignment, unsigned size_class, bool zero);

/* Tells observers that there is no memory for `size` bytes. Returns NULL, and sets ENOMEM. */
void *alloc_out_of_memory(size_t size);

/* A block at a multiple of `alignment`, a power of two. NULL and ENOMEM: there is no memory. */
void *alloc_aligned(size_t size, size_t alignment);

/* Bytes to take for such a block. Programs that ask for pages, of whatever system, may advise all
 * of them, and one more shows that when the block is freed (os_is_one_mapping); a big block has it
 * always, as it begins with a page. Shorter blocks share a slab: advice for their pages stays, as
 * under the C library. */
ALWAYS_INLINE size_t alloc_aligned_size(size_t size, size_t alignment)
{
    bool asks_for_pages = alignment >= PAGE_SIZE && alignment <= UNIT_SIZE;
    bool single = size <= LARGE_MAX && size_class_is_single(size_class_of(size));
    return asks_for_pages && single ? size + os_page_size() : size;
}

/* Changes the size of a block as C's realloc does; size 0 frees it and returns NULL. NULL and
 * ENOMEM: there is no memory, and the block is as before. */
void *alloc_resize(void *block, size_t size);

/* Changes the size of a block at a multiple of `alignment`, a power of two. The block stays in
 * place only if it fits as it is: programs seldom need this call, which C lacks. `size` is not 0.
 */
void *alloc_resize_aligned(void *block, size_t size, size_t alignment);

/* Makes a block longer or shorter in place, if that is possible. Returns its usable bytes, which
 * may be as many as before. */
size_t alloc_resize_in_place(void *block, size_t size);

/* Usable bytes of a live block, 0 for NULL. Aborts, naming `call`, if it is none. */
size_t alloc_usable_size(const void *block, const char *call);

/* The least usable bytes that a request for `size` bytes at a multiple of `alignment` gets; `size`
 * if it cannot be served. */
size_t alloc_good_size(size_t size, size_t alignment);

/* Bytes from the address, anywhere in a block, to the block's end: no fewer than may be used.
 * SIZE_MAX: it is not ours, or deep in a big block; 0: NULL, no bytes, or known to be free, which
 * ends the program in the hardened library. The fast one reads no record of the block: for an
 * address in a slab it returns the length of that slab's blocks. */
size_t alloc_object_size(const void *address);
size_t alloc_object_size_fast(const void *address);

/* Zeroed memory; NULL and ENOMEM also if count * size overflows. */
void *alloc_zeroed(size_t count, size_t size);

/* Zeroed memory at a multiple of `alignment`, a power of two. */
void *alloc_aligned_zeroed(size_t size, size_t alignment);

/* The class of a size above the tiny ones, by the front of the heap; CLASS_NONE for big ones, and
 * for all while the heap is closed. */
ALWAYS_INLINE size_t front_class(const struct heap_front *heap, size_t size)
{
    if (LIKELY(size <= MID_MAX))
        return LOAD_HOT(&heap->mid_class[(size - 1) / MID_STEP]);
    return size <= LARGE_MAX ? LOAD_HOT(&heap->large_class[(size - 1) / LARGE_STEP]) : CLASS_NONE;
}

/* A block of a short size from a magazine, or NULL; sets `*due` as magazine_pop does. */
ALWAYS_INLINE void *alloc_hit(struct heap_front *heap, size_t size, bool *due)
{
    if (LIKELY(size <= TINY_MAX))
        return magazine_pop(heap, LOAD_HOT(&heap->tiny_class[size]), due);
    return magazine_pop(heap, LOAD_HOT(&heap->mid_class[(size - 1) / MID_STEP]), due);
}

ALWAYS_INLINE bool is_long(size_t size)
{
    return UNLIKELY(size > TINY_MAX) && size > SHORT_MAX;
}

/* The hit paths of malloc and new, for short sizes and for long ones. They go on by jumps alone, so
 * that the stack of a sample begins at their caller: to `miss`, and from the first to `longer`. */
ALWAYS_INLINE void *alloc_short_or(
    size_t size, void *(*longer)(size_t, struct heap_front *), void *(*miss)(size_t))
{
    struct heap_front *heap = thread_heap;
    if (is_long(size))
        return longer(size, heap);
    bool due = false;
    void *block = alloc_hit(heap, size, &due);
    if (UNLIKELY(due))
        return alloc_due(block, size, MIN_ALIGNMENT, false);
    return LIKELY(block != NULL) ? block : miss(size);
}

ALWAYS_INLINE void *alloc_long_or(size_t size, struct heap_front *heap, void *(*miss)(size_t))
{
    bool due = false;
    void *block = magazine_pop_long(heap, front_class(heap, size), &due);
    if (UNLIKELY(due))
        return alloc_due(block, size, MIN_ALIGNMENT, false);
    return LIKELY(block != NULL) ? block : miss(size);
}

ALWAYS_INLINE void *alloc(size_t size)
{
    return HARDENED ? hardened_alloc(size, MIN_ALIGNMENT, FORM_MALLOC)
                    : alloc_short_or(size, alloc_long, alloc_slow);
}

/* The index of the block's class in the class map, if below `classes_limit`. The heap may change
 * over to another map in a signal handler: base, limit and map are read in this order, since an
 * older base finds no class in a newer map (map/page_map.h). */
ALWAYS_INLINE size_t class_index(const struct heap_front *heap, const void *block)
{
    size_t unit = ((uintptr_t)block - heap->classes_base) >> UNIT_SHIFT;
    KEEP_LOAD_ORDER();
    return unit;
}

/* Class of the slab that the pointer lies in; CLASS_NONE: the class map knows none. */
ALWAYS_INLINE unsigned class_at(const struct heap_front *heap, const void *block)
{
    size_t unit = class_index(heap, block);
    if (unit >= LOAD_HOT(&heap->classes_limit))
        return CLASS_NONE;
    KEEP_LOAD_ORDER();
    return ATOMIC_LOAD_RELAXED(&heap->classes[unit]);
}

/* Takes any pointer. Anything but a short block maps to class 0, whose magazine is always full.
 * `form`: the kind of function that frees. */
ALWAYS_INLINE void release_by(void *block, enum form form)
{
    if (HARDENED) {
        hardened_free(block, form);
        return;
    }
    struct heap_front *heap = thread_heap;
    size_t unit = class_index(heap, block);
    if (UNLIKELY(unit >= LOAD_HOT(&heap->classes_limit))) {
        /* Mostly NULL, which programs free often, and a hit need not be asked for. */
        if (block)
            free_far(block, heap);
        return;
    }
    KEEP_LOAD_ORDER();
    enum push push = magazine_push(heap, ATOMIC_LOAD_RELAXED(&heap->classes[unit]), block);
    if (UNLIKELY(push == PUSH_FULL))
        free_long(block, heap);
    if (UNLIKELY(push == PUSH_MARKED))
        free_marked(block, heap);
}

ALWAYS_INLINE void release(void *block)
{
    release_by(block, FORM_MALLOC);
}

/* Whether realloc returns NULL: since the size is 0, which frees the block, or too large. */
ALWAYS_INLINE bool resize_ends(void *block, size_t size)
{
    if (size == 0)
        release(block);
    if (UNLIKELY(size > SIZE_LIMIT))
        errno = ENOMEM;
    return UNLIKELY(size - 1 >= SIZE_LIMIT);
}

/* The end of a realloc that moves: copies the bytes that both blocks can hold, and frees the old
 * one. */
void resize_move(void *moved, void *block, size_t usable, size_t size);

#endif
