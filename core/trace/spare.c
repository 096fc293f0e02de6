/* See spare.h. */
#include "trace/spare.h"

#include "base/atomic.h"
#include "base/tuning.h"
#include "slab/bin.h"

/* Atomic, any thread: release on putting one in pairs with acquire on taking it out. */
static void *spares[SIZE_COUNT + 1];

void *spare_take(unsigned size_class)
{
    if (!ATOMIC_LOAD_RELAXED(&spares[size_class]))
        return NULL;
    return __atomic_exchange_n(&spares[size_class], NULL, __ATOMIC_ACQUIRE);
}

bool spare_put(unsigned size_class, void *block)
{
    void *none = NULL;
    return size_classes[size_class].size <= SPARE_BYTES_MAX &&
           __atomic_compare_exchange_n(
               &spares[size_class], &none, block, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void spare_flush(void)
{
    unsigned shard = ATOMIC_LOAD_RELAXED(&slab_samples_shard);
    if (!shard)
        return;
    for (unsigned size_class = 1; size_class <= SIZE_COUNT; size_class++) {
        void *block = spare_take(size_class);
        if (block)
            bin_flush(shard, size_class, &block, 1);
    }
}
