/* Tags of memory, on processors that have them (memory tagging of AArch64): four bits for each 16
 * bytes of memory that was mapped with them, and four in each pointer. A load or store by a pointer
 * with another tag than the memory's ends the program by SIGSEGV.
 *
 *     pointer   | 4 bits | tag | 56 bits: address |
 *     memory    | 0 | 7 | 7 | 7 | 0 | 0 | 12 | 12 | 0 | 0 |
 *                   | block         |   | block   |   | free
 *
 * Memory is mapped and purged with tag 0. All memory but live blocks has tag 0, and so have the
 * allocator's own pointers; the program's never have. A block has a random tag up to its requested
 * size, other than those of its neighbours and its last one.
 *
 * If memory has no tags although the processor has them, the block's pointer has tag 0, the tag
 * that reads return there. On other processors nothing of this is compiled.
 *
 * No lock: the owner of the block owns its tags.
 */
#ifndef HARDENED_TAGS_H
#define HARDENED_TAGS_H

#include "hardened/bytes.h"

#if defined(__aarch64__)
#include "hardened/tags_aarch64.h"
#else

/* Turns tags on, for the calling thread and those that it will start; to be called once. */
ALWAYS_INLINE void tags_start(void)
{
}

/* Memory of whole pages, which the caller has mapped, takes tags from now on. */
ALWAYS_INLINE void tags_prepare(void *address, size_t size)
{
    (void)address;
    (void)size;
}

/* The tag of the pointer. */
ALWAYS_INLINE unsigned tags_of(const void *pointer)
{
    (void)pointer;
    return 0;
}

/* The address. */
ALWAYS_INLINE void *tags_strip(const void *pointer)
{
    return (void *)pointer;
}

/* The address with the tag of the pointer. */
ALWAYS_INLINE void *tags_like(const void *address, const void *pointer)
{
    (void)pointer;
    return (void *)address;
}

/* Whether the memory has the tag of the pointer. */
ALWAYS_INLINE bool tags_match(const void *pointer)
{
    (void)pointer;
    return true;
}

/* Gives a free block a tag, other than `last` and than the tags of the memory at `before` and
 * `behind`, where its neighbours begin, or, without one, the block. Returns its pointer. */
ALWAYS_INLINE void *tags_give(
    void *block, size_t size, const void *before, const void *behind, unsigned last)
{
    (void)size;
    (void)before;
    (void)behind;
    (void)last;
    return block;
}

/* The block has another size, and keeps its tag. */
ALWAYS_INLINE void tags_resize(void *pointer, size_t before, size_t size)
{
    (void)pointer;
    (void)before;
    (void)size;
}

/* Takes the tags of a whole block, and clears it. */
ALWAYS_INLINE void tags_clear(void *block, size_t size)
{
    bytes_clear(block, size);
}

/* Between the two calls the thread may load and store by pointers of any tag. */
ALWAYS_INLINE void tags_ignore(void)
{
}

ALWAYS_INLINE void tags_heed(void)
{
}

#endif

#endif
