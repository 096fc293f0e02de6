/* Shards: separate bins for threads on different CPUs.
 *
 * A shard is a set of bins, one a size class. Each thread heap is assigned a shard, which serves
 * it; other shards serve it only if that has nothing.
 *
 *     shards:  | 0 | 1 | 2 |   ...   | 63 |
 *                |   |   |  not prepared: NULL
 *                |   +-- mapped when the first heap is assigned to it
 *                +-- part of the library
 *
 * Once samples are taken, one more shard has the slabs of sampled blocks, from which no heap takes
 * blocks. A shard that was prepared stays. No lock: the table is set by atomic steps.
 */
#ifndef SLAB_SHARD_H
#define SLAB_SHARD_H

#include "base/atomic.h"
#include "slab/bin.h"
#include "span/big_cache.h"
#include "span/page_heap.h"

/* Most shards for heaps, and of all. */
enum { SHARD_MAX = 64, ALL_SHARDS_MAX = SHARD_MAX + 1 };

_Static_assert((int)SHARD_MAX == SHARD_PARTS_MAX, "a part a shard");

struct shard {
    struct bin bins[CLASS_COUNT];
};

/* Prepared shards come first. Atomic: release on store pairs with acquire on load of shard_count; a
 * thread that has the number of a shard may use it. */
extern struct shard *shard_table[ALL_SHARDS_MAX];

/* Prepares the shard of samples (slab_samples_shard): the first index past the heaps' shards. After
 * this call no heap gets a new shard. False: there is no memory. */
bool shard_prepare_samples(void);

/* Spreads the heaps made from now on over `count` shards. */
void shard_init(unsigned count);

/* Prepares the shard of the `index`th heap and returns it, or, without memory for it, the first. To
 * be called without locks. */
unsigned shard_of_heap(unsigned index);

/* Shards that new heaps are spread over. */
unsigned shards_in_use(void);

/* Number of prepared shards, which may hold slabs and blocks. Never shrinks. */
unsigned shard_count(void);

ALWAYS_INLINE struct bin *bin_of(unsigned shard, unsigned size_class)
{
    return &shard_table[shard]->bins[size_class];
}

/* How many numbers count through shards and classes. */
ALWAYS_INLINE unsigned shard_places(void)
{
    return shard_count() * CLASS_COUNT;
}

/* The bin of such a number. */
ALWAYS_INLINE struct bin *bin_at(unsigned number)
{
    return bin_of(number / CLASS_COUNT, number % CLASS_COUNT);
}

#endif
