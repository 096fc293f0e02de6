/* Marks free memory for AddressSanitizer, in builds with HAKMEM_SANITIZE=address; no code in
 * others.
 *
 * Free memory is poisoned: each read or write of it, by this library too, is reported. The rule of
 * every layer: it hands out open memory, and poisons memory that it gets back. The first word of a
 * block of a slab, which holds the mark (thread/magazine.h), stays open. Addresses that go back to
 * the system are opened, since other code may get them.
 */
#ifndef BASE_POISON_H
#define BASE_POISON_H

#include "base/macros.h"

void __asan_poison_memory_region(const volatile void *start, size_t size);
void __asan_unpoison_memory_region(const volatile void *start, size_t size);

ALWAYS_INLINE void poison(const void *start, size_t size)
{
    if (HAKMEM_SANITIZE_ADDRESS)
        __asan_poison_memory_region(start, size);
}

ALWAYS_INLINE void unpoison(const void *start, size_t size)
{
    if (HAKMEM_SANITIZE_ADDRESS)
        __asan_unpoison_memory_region(start, size);
}

/* Poisons a free block of a slab. */
ALWAYS_INLINE void poison_block(const void *block, size_t size)
{
    poison(block, size);
    unpoison(block, sizeof(void *));
}

ALWAYS_INLINE void poison_blocks(void *const *blocks, unsigned count, size_t size)
{
    for (unsigned i = 0; HAKMEM_SANITIZE_ADDRESS && i < count; i++)
        poison_block(blocks[i], size);
}

ALWAYS_INLINE void unpoison_blocks(void *const *blocks, unsigned count, size_t size)
{
    for (unsigned i = 0; HAKMEM_SANITIZE_ADDRESS && i < count; i++)
        unpoison(blocks[i], size);
}

#endif
