/* The shadow of the address space: one bit per 16 bytes, set while a live block covers them.
 *
 * Blocks begin at multiples of 16 (which the stress checks first), so two blocks that overlap in
 * a single byte share a granule of 16: the model is exact for blocks of every size.
 *
 *     address bits   46 ......... 30 29 .................. 10 9 .... 4 3 .. 0
 *                    root index      64-bit word of the leaf  bit      -
 *
 * A leaf shadows 1 GiB with 8 MiB of its own mapping, made at the first touch and never unmapped.
 *
 * Thread rule: any thread, without locks. Words change by relaxed atomic operations whose old
 * value shows a conflict; bits are cleared before the block is freed and set after it was handed
 * out, so the order between two owners of the same address is the one the allocator makes. */
#ifndef STRESS_SHADOW_H
#define STRESS_SHADOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHADOW_ADDRESS_BITS = 47, SHADOW_LEAF_WORDS_LOG2 = 20, SHADOW_WORD_LOG2 = 10 };

#define SHADOW_ROOTS ((size_t)1 << (SHADOW_ADDRESS_BITS - SHADOW_LEAF_WORDS_LOG2 - 10))

typedef _Atomic uint64_t shadow_word;

/* Set once by shadow_leaf_make (release), read by everybody (acquire). */
extern _Atomic(shadow_word *) shadow_roots[SHADOW_ROOTS];

/* Maps the leaf of root `root`, or returns the one that another thread mapped. */
shadow_word *shadow_leaf_make(size_t root);

/* Marks or clears a range that spans several words; true on success. */
bool shadow_mark_words(uintptr_t first, uintptr_t last);
bool shadow_clear_words(uintptr_t first, uintptr_t last);

/* The word whose bits stand for 1 KiB from address `number` << 10. */
static inline shadow_word *shadow_find(uintptr_t number)
{
    size_t root = number >> SHADOW_LEAF_WORDS_LOG2;
    shadow_word *leaf = atomic_load_explicit(&shadow_roots[root], memory_order_acquire);

    if (__builtin_expect(leaf == NULL, 0))
        leaf = shadow_leaf_make(root);
    return &leaf[number & (((uintptr_t)1 << SHADOW_LEAF_WORDS_LOG2) - 1)];
}

/* The bits of granules `from` to `to` (0..63, both included). */
static inline uint64_t shadow_mask(unsigned from, unsigned to)
{
    return (~(uint64_t)0 >> (63 - (to - from))) << from;
}

/* Where the pointer leads: AArch64 looks at the upper byte of none, where tags of memory are. */
static inline uintptr_t shadow_address(const void *block)
{
#if defined(__aarch64__)
    return (uintptr_t)block & UINTPTR_MAX >> 8;
#else
    return (uintptr_t)block;
#endif
}

/* Says whether the range can be shadowed at all. */
static inline bool shadow_covers(const void *block, size_t bytes)
{
    return ((shadow_address(block) + bytes) >> SHADOW_ADDRESS_BITS) == 0;
}

/* Marks [block, block + bytes) as live; false when any of it was live already. The shadow is not
 * usable after a failure: adding bits is cheaper than setting them, but carries over. */
static inline bool shadow_mark(const void *block, size_t bytes)
{
    uintptr_t first = shadow_address(block) >> 4;
    uintptr_t last = (shadow_address(block) + bytes - 1) >> 4;

    if (__builtin_expect((first >> 6) != (last >> 6), 0))
        return shadow_mark_words(first, last);
    uint64_t mask = shadow_mask(first & 63, last & 63);
    return (atomic_fetch_add_explicit(shadow_find(first >> 6), mask, memory_order_relaxed) &
            mask) == 0;
}

/* Ends what shadow_mark began; false when not all of it was live. */
static inline bool shadow_clear(const void *block, size_t bytes)
{
    uintptr_t first = shadow_address(block) >> 4;
    uintptr_t last = (shadow_address(block) + bytes - 1) >> 4;

    if (__builtin_expect((first >> 6) != (last >> 6), 0))
        return shadow_clear_words(first, last);
    uint64_t mask = shadow_mask(first & 63, last & 63);
    return (atomic_fetch_sub_explicit(shadow_find(first >> 6), mask, memory_order_relaxed) &
            mask) == mask;
}

#endif
