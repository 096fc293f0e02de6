/* See shard.h. */
#include "slab/shard.h"

#include "os/os.h"

static CACHE_ALIGNED struct shard first_shard;

struct shard *shard_table[ALL_SHARDS_MAX] = {&first_shard};

static unsigned active = 1;   /* atomic relaxed, any thread: shards that heaps are spread over */
static unsigned prepared = 1; /* atomic, any thread: see shard_table */

/* The first shard that no heap is ever assigned to; 0: undecided. Atomic relaxed, any thread. */
static unsigned heap_shards_end;

void shard_init(unsigned count)
{
    unsigned most = ATOMIC_LOAD_RELAXED(&heap_shards_end);
    most = most ? most : SHARD_MAX;
    count = count < 1 ? 1 : count > most ? most : count;
    ATOMIC_STORE_RELAXED(&active, count);
}

unsigned shards_in_use(void)
{
    return ATOMIC_LOAD_RELAXED(&active);
}

unsigned shard_count(void)
{
    return ATOMIC_LOAD_ACQUIRE(&prepared);
}

static size_t shard_bytes(void)
{
    return round_up(sizeof(struct shard), os_page_size());
}

/* Prepares the shard `index`, if that is still the next; false: there is no memory. */
static bool prepare_next(unsigned index)
{
    struct shard *none = NULL, *made = os_map(shard_bytes(), CACHE_LINE, NULL);
    if (!made)
        return false;
    if (!__atomic_compare_exchange_n(
            &shard_table[index], &none, made, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        os_discard(made, shard_bytes());
    /* Each thread that needs the shard counts it, even if another thread made it. */
    unsigned before = index;
    __atomic_compare_exchange_n(
        &prepared, &before, index + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    return true;
}

/* Prepares the shard and those before it. */
static bool prepare_up_to(unsigned shard)
{
    unsigned next;
    while ((next = shard_count()) <= shard)
        if (!prepare_next(next))
            return false;
    return true;
}

unsigned shard_of_heap(unsigned index)
{
    unsigned shard = index % shards_in_use();
    return prepare_up_to(shard) ? shard : 0;
}

/* Decides `heap_shards_end`. Heaps may belong to shards no longer in use, if the first call came
 * before the options were known. */
static unsigned decide_heap_shards_end(void)
{
    unsigned open = 0, first = shard_count() > shards_in_use() ? shard_count() : shards_in_use();
    return __atomic_compare_exchange_n(
               &heap_shards_end, &open, first, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
               ? first
               : open;
}

bool shard_prepare_samples(void)
{
    unsigned shard = decide_heap_shards_end();
    if (!prepare_up_to(shard))
        return false;
    ATOMIC_STORE_RELAXED(&slab_samples_shard, (uint8_t)shard);
    return true;
}
