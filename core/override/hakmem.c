/* The functions of include/hakmem/hakmem.h. */
#include "hakmem/hakmem.h"

#include <errno.h>
#include <string.h>

#include "api/alloc.h"
#include "api/options.h"
#include "base/pressure.h"
#include "base/text.h"
#include "hardened.h"
#include "reclaim/engine.h"
#include "report/report.h"
#include "report/stats.h"
#include "thread/idle.h"
#include "trace/trace.h"

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
    return alloc_good_size(size, MIN_ALIGNMENT);
}

void hakmem_thread_flush(void)
{
    struct heap *heap = heap_enter();
    if (!heap)
        return;
    hardened_flush();
    heap_flush(heap, SIZE_MAX);
    heap_leave(heap);
}

size_t hakmem_purge(void)
{
    struct heap *heap = heap_enter();
    if (!heap)
        return 0;
    hardened_flush();
    heap_flush(heap, SIZE_MAX);
    size_t purged = reclaim_everything();
    heap_leave(heap);
    return purged;
}

/* Copies the fields that the caller knows; those that only the caller knows become 0. */
static size_t copy_known(void *to, size_t size, const void *from, size_t known)
{
    size_t shared = size_min(size, known);
    memcpy(to, from, shared);
    memset((char *)to + shared, 0, size - shared);
    return shared;
}

size_t hakmem_get_stats(struct hakmem_stats *stats, size_t size)
{
    struct snapshot now;
    stats_collect(&now);
    return copy_known(stats, size, &now.total, sizeof now.total);
}

unsigned hakmem_tier_count(void)
{
    return TIER_COUNT;
}

const char *hakmem_tier_name(unsigned tier)
{
    return tier < TIER_COUNT ? stats_tier_names[tier] : NULL;
}

size_t hakmem_get_tier(unsigned tier, struct hakmem_usage *usage, size_t size)
{
    struct snapshot now;
    if (tier >= TIER_COUNT) {
        memset(usage, 0, size);
        return 0;
    }
    stats_collect(&now);
    return copy_known(usage, size, &now.tier[tier], sizeof now.tier[tier]);
}

unsigned hakmem_class_count(void)
{
    return SIZE_COUNT;
}

size_t hakmem_class_size(unsigned index)
{
    return index < SIZE_COUNT ? size_classes[index + 1].size : 0;
}

size_t hakmem_get_class(unsigned index, struct hakmem_usage *usage, size_t size)
{
    struct hakmem_usage now;
    if (index >= SIZE_COUNT) {
        memset(usage, 0, size);
        return 0;
    }
    stats_collect_class(index + 1, &now);
    return copy_known(usage, size, &now, sizeof now);
}

size_t hakmem_stats_json(char *buffer, size_t capacity)
{
    struct text text;
    text_init(&text, buffer, capacity);
    report_json(&text, NULL);
    text_terminate(&text);
    return text.length;
}

int hakmem_profile_write(const char *path)
{
    return trace_now() ? trace_now()->write_profile(path) : ENODATA;
}

int hakmem_option_get(const char *name, long *value)
{
    return options_get(name, value);
}

/* False: there is no memory, or no trace/ to take samples. */
static bool set_mean(size_t bytes)
{
    return trace_now() ? trace_now()->set_mean(bytes) : !bytes;
}

int hakmem_option_set(const char *name, long value)
{
    long before = 0;
    (void)options_get(name, &before);
    int result = options_set(name, value);
    if (!result && options_find(name, strlen(name)) == OPTION_sample_kib &&
        !set_mean(trace_mean(value))) {
        (void)options_set(name, before);
        result = ENOMEM;
    }
    return result;
}
