/* See parts.h. */
#include "span/parts.h"

#include "map/metadata.h"

/* Makes the next part, if that is still the one of the number `index`; false when there is no
 * memory. */
static bool make(struct parts *parts, unsigned index)
{
    void *none = NULL, *made = metadata_alloc(parts->size);
    if (!made)
        return false;
    if (!__atomic_compare_exchange_n(
            &parts->part[index], &none, made, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        metadata_free(made, parts->size);
    /* Whoever made it: each who waits for it says that it is there. */
    unsigned before = index;
    __atomic_compare_exchange_n(
        &parts->count, &before, index + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    return true;
}

unsigned parts_use(struct parts *parts, unsigned part)
{
    unsigned next;
    while (UNLIKELY((next = parts_count(parts)) <= part))
        if (!make(parts, next))
            return 0;
    return part;
}
