/* See record.h. */
#include "trace/record.h"

#include <string.h>

#include "api/environment.h"
#include "base/policy.h"
#include "report/report.h"
#include "report/stats.h"
#include "scope/scope.h"
#include "span/big_cache.h"
#include "trace/log.h"
#include "trace/sample.h"

static void tell_observer(const char *line, size_t length)
{
    length = size_min(length, ATTACH_SAID_BYTES - 1);
    memcpy(attachment.said, line, length);
    attachment.said[length] = '\0';
}

/* The bytes of slabs that are neither live nor cached: free blocks, ends, untouched pages. */
static uint64_t rest_of_slabs(const struct snapshot *now)
{
    uint64_t slabs = 0, used = 0;
    for (unsigned tier = 0; tier < HAKMEM_TIER_BIG; tier++) {
        slabs += now->tier[tier].committed_bytes;
        used += now->tier[tier].live_bytes + now->tier[tier].cached_bytes;
    }
    return slabs > used ? slabs - used : 0;
}

static void fill_snapshot(struct log_snapshot *to)
{
    struct snapshot now;
    stats_collect(&now);
    const struct hakmem_stats *total = &now.total;
    to->live_blocks = total->live_blocks;
    to->live = total->live_bytes;
    to->magazines = total->cached_bytes - size_min(total->transfer_bytes, total->cached_bytes);
    to->transfer = total->transfer_bytes;
    to->slabs_free = rest_of_slabs(&now);
    to->big_cache = big_stats().cached_bytes;
    to->page_heap_free = total->retained_bytes - size_min(to->big_cache, total->retained_bytes);
    to->metadata = total->metadata_bytes;
    to->mapped = total->mapped_bytes;
    to->committed = total->committed_bytes;
    to->purged = total->purged_bytes;
    to->threads = total->threads;
    to->malloc_calls = total->malloc_calls;
    to->free_calls = total->free_calls;
    for (unsigned tier = 0; tier < ARRAY_LENGTH(to->tier_live); tier++)
        to->tier_live[tier] = now.tier[tier].live_bytes;
    /* Looking for their spans takes the whole page map. */
    if (SCOPES && scope_arenas()) {
        size_t live = scope_live_of_all(), resident = scope_resident(NULL);
        to->live += live;
        to->slabs_free += resident - size_min(live, resident);
    }
}

static void start_log(const char *path, uint64_t sample_mean_bytes, bool is_attached)
{
    const struct log_settings settings = {
        .path = path,
        .limit_bytes = (size_t)POLICY(record_mib) * MIB,
        .sample_mean_bytes = sample_mean_bytes,
        .is_attached = is_attached,
        .take = fill_snapshot,
        .say = is_attached ? tell_observer : report_say};
    log_start(&settings);
}

void record_answer(uint32_t request)
{
    static const char own[] = "it is recorded already";
    if (log_is_on() && !attachment.is_recording) {
        tell_observer(own, sizeof own - 1);
        return;
    }
    if (attachment.is_recording) {
        sample_set_mean(trace_mean(POLICY(sample_kib)));
        log_detach();
    }
    attachment.is_recording = false;
    if (request != ATTACH_BEGIN)
        return;
    attachment.said[0] = attachment.path[ATTACH_PATH_BYTES - 1] = '\0';
    start_log(attachment.path, attachment.mean_bytes, true);
    attachment.is_recording = log_is_on() && sample_set_mean(attachment.mean_bytes);
    if (log_is_on() && !attachment.is_recording)
        log_detach();
}

void record_start(uint64_t sample_mean_bytes)
{
    const char *path = environment_file(RECORD_FILE);
    if (path)
        start_log(path, sample_mean_bytes, false);
}
