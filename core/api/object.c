/* The usable bytes from an address on, for callers that check before they write, above all
 * functions of a fortified C library. See alloc.h. */
#include "api/alloc.h"
#include "api/block.h"

/* Usable bytes of a block of an ordinary slab; 0: its state says that it is free. Short blocks have
 * no state, and may be free all the same. */
static size_t size_in_slab(const struct slab *slab, const char *start)
{
    unsigned size_class = slab->size_class;
    bool is_live =
        !size_class_is_long(size_class) ||
        superslab_is_live(ATOMIC_LOAD_RELAXED(superslab_state_of(start)), start, size_class);
    return is_live ? size_classes[size_class].size : 0;
}

static size_t object_in_slab(const struct slab *slab, const char *address)
{
    unsigned index = slab_index_at(slab, address);
    const char *start = slab_block(slab, index);
    return index < slab->blocks ? bytes_left(start, size_in_slab(slab, start), address) : 0;
}

static size_t object_big(const struct big *big, const char *address)
{
    const char *start = big->region.base;
    return big->live ? bytes_left(start, big_size(big, start, "malloc_object_size"), address) : 0;
}

size_t alloc_object_size(const void *address)
{
    if (!address)
        return 0;
    struct block_info info = block_find(address);
    switch (info.kind) {
    case BLOCK_SLAB:
        return object_in_slab(info.slab, address);
    case BLOCK_BIG:
        return object_big(info.big, address);
    case BLOCK_WATCHED:
        return trace_now()->object(address);
    case BLOCK_SCOPED:
        return SCOPES ? scope_object(address) : 0;
    case BLOCK_GONE:
        return 0;
    case BLOCK_FOREIGN:
        break;
    }
    return SIZE_MAX;
}

size_t alloc_object_size_fast(const void *address)
{
    if (!address)
        return 0;
    const struct slab *slab = slab_lookup(address);
    return slab ? size_classes[slab->size_class].size : SIZE_MAX;
}
