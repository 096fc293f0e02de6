/* Tags of memory on AArch64: tags.h says what the functions do. */
#ifndef HARDENED_TAGS_AARCH64_H
#define HARDENED_TAGS_AARCH64_H

#include "hardened/bytes.h"

enum { TAGS_GRANULE = 16, TAGS_SHIFT = 56, TAGS_MASK = 15 };

/* Const after tags_start. */
extern bool tags_on;

void tags_start(void);
void tags_prepare(void *address, size_t size);

ALWAYS_INLINE unsigned tags_of(const void *pointer)
{
    return tags_on ? (uintptr_t)pointer >> TAGS_SHIFT & TAGS_MASK : 0;
}

ALWAYS_INLINE void *tags_strip(const void *pointer)
{
    return (void *)((uintptr_t)pointer - ((uintptr_t)tags_of(pointer) << TAGS_SHIFT));
}

ALWAYS_INLINE void *tags_like(const void *address, const void *pointer)
{
    return (void *)((uintptr_t)address | (uintptr_t)tags_of(pointer) << TAGS_SHIFT);
}

/* ---- Instructions, which no processor without tags knows ------------------------------------- */

/* As numbers: an assembler knows the names only if it is told of such a processor, and then forgets
 * the compiler's other settings. The registers' numbers are values of symbols, .Ltags_x7. */
#define TAGS_REGISTERS                                                                             \
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30\n"  \
    ".equ .Ltags_x\\n, \\n\n"                                                                      \
    ".endr\n"
#define TAGS_INSTRUCTION(number, first, second)                                                    \
    TAGS_REGISTERS ".inst " #number " | .Ltags_" first " | .Ltags_" second " << 5"

/* The tag of the memory: ldg. */
ALWAYS_INLINE unsigned tags_load(const void *address)
{
    uintptr_t tagged = 0;
    __asm__ volatile(TAGS_INSTRUCTION(0xd9600000, "%0", "%1")
                     : "+r"(tagged)
                     : "r"(address)
                     : "memory");
    return tagged >> TAGS_SHIFT & TAGS_MASK;
}

/* The address with a random tag of those that are not excluded, a bit each: irg. */
ALWAYS_INLINE char *tags_draw(void *address, uintptr_t excluded)
{
    char *tagged;
    __asm__ volatile(TAGS_INSTRUCTION(0x9ac01000, "%0", "%1") " | .Ltags_%2 << 16"
                     : "=r"(tagged)
                     : "r"(address), "r"(excluded));
    return tagged;
}

/* Gives the memory from `start` up to `end`, whole granules, the pointers' tag: stg and st2g. */
ALWAYS_INLINE void tags_store(char *start, const char *end)
{
    if ((end - start) / TAGS_GRANULE % 2)
        __asm__ volatile(TAGS_INSTRUCTION(0xd9201400, "%0", "%0") : "+r"(start)::"memory");
    while (start < end)
        __asm__ volatile(TAGS_INSTRUCTION(0xd9a02400, "%0", "%0") : "+r"(start)::"memory");
}

/* Sets the tags of the range and clears it: stzg and stz2g. */
ALWAYS_INLINE void tags_store_clear(char *start, const char *end)
{
    if ((end - start) / TAGS_GRANULE % 2)
        __asm__ volatile(TAGS_INSTRUCTION(0xd9601400, "%0", "%0") : "+r"(start)::"memory");
    while (start < end)
        __asm__ volatile(TAGS_INSTRUCTION(0xd9e02400, "%0", "%0") : "+r"(start)::"memory");
}

/* Writes to PSTATE.TCO. A signal handler begins with tags heeded. */
ALWAYS_INLINE void tags_ignore(void)
{
    if (tags_on)
        __asm__ volatile(".inst 0xd503419f" ::: "memory");
}

ALWAYS_INLINE void tags_heed(void)
{
    if (tags_on)
        __asm__ volatile(".inst 0xd503409f" ::: "memory");
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

ALWAYS_INLINE bool tags_match(const void *pointer)
{
    return !tags_on || tags_load(pointer) == tags_of(pointer);
}

/* The end of the tagged part of a block of `size` bytes: 16 bytes at least, to know it by. */
ALWAYS_INLINE char *tags_end(void *block, size_t size)
{
    return (char *)block + round_up(size_max(size, 1), TAGS_GRANULE);
}

/* Neighbours may be about to get tags, too: so each owner looks at the neighbours' tags again after
 * it has set its own, and the last one sees the other. */
ALWAYS_INLINE void *tags_give(
    void *block, size_t size, const void *before, const void *behind, unsigned last)
{
    if (!tags_on)
        return block;
    for (;;) {
        uintptr_t excluded = 1u | 1u << last | 1u << tags_load(before) | 1u << tags_load(behind);
        char *pointer = tags_draw(block, excluded);
        unsigned tag = tags_of(pointer);
        tags_store(pointer, tags_end(pointer, size));
        __asm__ volatile("dmb ish" ::: "memory");
        if (UNLIKELY(tags_load(block) != tag))
            return block;
        bool unlike_before = before == block || tags_load(before) != tag;
        bool unlike_behind = behind == block || tags_load(behind) != tag;
        if (LIKELY(unlike_before) && LIKELY(unlike_behind))
            return pointer;
    }
}

ALWAYS_INLINE void tags_resize(void *pointer, size_t before, size_t size)
{
    if (!tags_on)
        return;
    char *start = tags_end(pointer, before), *end = tags_end(pointer, size);
    if (end > start)
        tags_store(start, end);
    else
        tags_store(tags_strip(end), tags_strip(start));
}

ALWAYS_INLINE void tags_clear(void *block, size_t size)
{
    if (tags_on)
        tags_store_clear(block, (char *)block + size);
    else
        bytes_clear(block, size);
}

#endif
