/* See parts.h. */
#include "span/parts.h"

#include "map/metadata.h"

/* Each thread that needs the part counts it, even if another thread made it. */
static void count_made(struct parts *parts, unsigned index)
{
    unsigned before = index;
    __atomic_compare_exchange_n(
        &parts->count, &before, index + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* Makes the part `index`, if that is still the next; false: there is no memory. */
static bool make_part(struct parts *parts, unsigned index)
{
    /* Parts begin with locks at a cache line, to which records are not aligned. */
    size_t size = parts->size + CACHE_LINE;
    char *record = metadata_alloc(size);
    if (!record)
        return false;
    void *none = NULL, *made = record + (-(uintptr_t)record & (CACHE_LINE - 1));
    if (!__atomic_compare_exchange_n(
            &parts->part[index], &none, made, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        metadata_free(record, size);
    count_made(parts, index);
    return true;
}

unsigned parts_use(struct parts *parts, unsigned part)
{
    unsigned next;
    while (UNLIKELY((next = parts_count(parts)) <= part))
        if (!make_part(parts, next))
            return 0;
    return part;
}
