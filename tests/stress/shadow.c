/* The cold half of the shadow: mapping leaves, and ranges longer than one word. */
#include "shadow.h"

#include "stress.h"

_Atomic(shadow_word *) shadow_roots[SHADOW_ROOTS];

shadow_word *shadow_leaf_make(size_t root)
{
    size_t bytes = sizeof(shadow_word) << SHADOW_LEAF_WORDS_LOG2;
    shadow_word *leaf = harness_map(bytes);
    shadow_word *winner = NULL;

    if (atomic_compare_exchange_strong_explicit(
            &shadow_roots[root], &winner, leaf, memory_order_acq_rel, memory_order_acquire))
        return leaf;
    harness_unmap(leaf, bytes);
    return winner;
}

bool shadow_mark_words(uintptr_t first, uintptr_t last)
{
    uint64_t head = shadow_mask(first & 63, 63);
    uint64_t tail = shadow_mask(0, last & 63);
    uint64_t taken =
        atomic_fetch_add_explicit(shadow_find(first >> 6), head, memory_order_relaxed) & head;

    for (uintptr_t word = (first >> 6) + 1; word < last >> 6; word++)
        taken |= atomic_exchange_explicit(shadow_find(word), ~(uint64_t)0, memory_order_relaxed);
    taken |= atomic_fetch_add_explicit(shadow_find(last >> 6), tail, memory_order_relaxed) & tail;
    return taken == 0;
}

bool shadow_clear_words(uintptr_t first, uintptr_t last)
{
    uint64_t head = shadow_mask(first & 63, 63);
    uint64_t tail = shadow_mask(0, last & 63);
    uint64_t absent =
        ~atomic_fetch_sub_explicit(shadow_find(first >> 6), head, memory_order_relaxed) & head;

    for (uintptr_t word = (first >> 6) + 1; word < last >> 6; word++)
        absent |= ~atomic_exchange_explicit(shadow_find(word), 0, memory_order_relaxed);
    absent |= ~atomic_fetch_sub_explicit(shadow_find(last >> 6), tail, memory_order_relaxed) & tail;
    return absent == 0;
}
