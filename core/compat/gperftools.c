/* The C functions of MallocExtension, for programs that are built for gperftools' tcmalloc. Calls
 * by MallocExtension::instance() in C++ go to the tcmalloc behind, which serves no call. */
#include <string.h>

#include "api/alloc.h"
#include "api/block.h"
#include "compat/figures.h"
#include "compat/names.h"
#include "override/override.h"
#include "report/report.h"
#include "report/stats.h"

static const char properties[] = "generic.current_allocated_bytes\0"
                                 "generic.heap_size\0"
                                 "generic.total_physical_bytes\0"
                                 "tcmalloc.current_total_thread_cache_bytes\0"
                                 "tcmalloc.thread_cache_free_bytes\0"
                                 "tcmalloc.transfer_cache_free_bytes\0"
                                 "tcmalloc.central_cache_free_bytes\0"
                                 "tcmalloc.pageheap_free_bytes\0"
                                 "tcmalloc.pageheap_unmapped_bytes\0";

static uint64_t property_value(int property)
{
    struct snapshot now;
    const struct hakmem_stats *total = &now.total;
    stats_collect(&now);
    uint64_t handed_out = total->live_bytes + total->cached_bytes;
    switch (property) {
    case 0:
        return total->live_bytes;
    case 1:
        return total->mapped_bytes;
    case 2:
        return figures_resident(total);
    case 3:
    case 4:
        return stats_difference(total->cached_bytes, total->transfer_bytes);
    case 5:
        return total->transfer_bytes;
    case 6:
        return stats_difference(total->committed_bytes, handed_out);
    case 7:
        return total->retained_bytes;
    default:
        return figures_unused_addresses(total);
    }
}

/* 1: there is such a property. */
EXPORT int MallocExtension_GetNumericProperty(const char *property, size_t *value)
{
    size_t number;
    int found = names_find(properties, property, &number);
    if (found >= 0)
        *value = property_value(found);
    return found >= 0;
}

/* No property of tcmalloc can be set here. */
EXPORT int MallocExtension_SetNumericProperty(const char *property, size_t value)
{
    (void)property;
    (void)value;
    return 0;
}

EXPORT void MallocExtension_ReleaseFreeMemory(void)
{
    hakmem_purge();
}

/* Gives back all free memory, whatever `bytes` says, unless it is 0. */
EXPORT void MallocExtension_ReleaseToSystem(size_t bytes)
{
    if (bytes)
        hakmem_purge();
}

EXPORT void MallocExtension_MarkThreadIdle(void)
{
    hakmem_thread_flush();
}

EXPORT void MallocExtension_MarkThreadTemporarilyIdle(void)
{
    hakmem_thread_flush();
}

EXPORT void MallocExtension_MarkThreadBusy(void)
{
}

EXPORT size_t MallocExtension_GetEstimatedAllocatedSize(size_t size)
{
    return alloc_good_size(size, MIN_ALIGNMENT);
}

EXPORT size_t MallocExtension_GetAllocatedSize(const void *block)
{
    return alloc_usable_size(block, "MallocExtension_GetAllocatedSize");
}

/* The values are gperftools'. */
EXPORT int MallocExtension_GetOwnership(const void *block)
{
    enum { OWNED = 1, NOT_OWNED = 2 };
    enum block_kind kind = block_find(block).kind;
    return kind == BLOCK_FOREIGN || kind == BLOCK_GONE ? NOT_OWNED : OWNED;
}

/* A buffer of the caller's. */
struct room {
    char *start;
    size_t bytes;
};

static bool copy(void *to, const char *report, size_t length)
{
    const struct room *room = to;
    size_t copied = size_min(length, room->bytes - 1);
    memcpy(room->start, report, copied);
    room->start[copied] = '\0';
    return true;
}

/* Hakmem's report, cut off at the end of the buffer. */
EXPORT void MallocExtension_GetStats(char *buffer, int length)
{
    struct room room = {buffer, (size_t)length};
    if (length > 0 && !report_make(report_table, copy, &room))
        *buffer = '\0';
}
