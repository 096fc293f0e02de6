/* The functions of include/hakmem/hakmem.h. */
#include "hakmem/hakmem.h"

#include <string.h>

#include "api/alloc.h"
#include "api/options.h"
#include "base/text.h"
#include "observe/report.h"
#include "observe/stats.h"
#include "slab/depot.h"

const char *hakmem_version(void)
{
    return HAKMEM_VERSION;
}

size_t hakmem_usable_size(const void *block)
{
    return alloc_usable_size(block, "hakmem_usable_size");
}

size_t hakmem_good_size(size_t size)
{
    return alloc_good_size(size);
}

void hakmem_thread_flush(void)
{
    struct heap *heap = heap_enter();
    if (!heap)
        return;
    heap_flush(heap);
    heap_leave(heap);
}

size_t hakmem_purge(void)
{
    struct heap *heap = heap_enter();
    if (!heap)
        return 0;
    heap_flush(heap);
    size_t purged = heap_purge();
    heap_leave(heap);
    return purged;
}

void hakmem_get_stats(struct hakmem_stats *stats, size_t size)
{
    struct hakmem_stats all;
    stats_collect(&all);
    memcpy(stats, &all, size_min(size, sizeof all));
}

unsigned hakmem_class_count(void)
{
    return SIZE_COUNT;
}

size_t hakmem_get_class(unsigned index, struct hakmem_usage *usage, size_t size)
{
    struct hakmem_usage all;
    if (index >= SIZE_COUNT)
        return 0;
    stats_collect_class(index + 1, &all);
    memcpy(usage, &all, size_min(size, sizeof all));
    return size_classes[index + 1].size;
}

size_t hakmem_stats_json(char *buffer, size_t capacity)
{
    struct text text;
    text_init(&text, buffer, capacity);
    report_json(&text);
    text_terminate(&text);
    return text.length;
}

int hakmem_option_get(const char *name, long *value)
{
    return options_get(name, value);
}

int hakmem_option_set(const char *name, long value)
{
    return options_set(name, value);
}
