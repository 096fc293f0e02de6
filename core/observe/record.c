/* See record.h. */
#include "observe/record.h"

#include "api/environment.h"
#include "base/policy.h"
#include "observe/report.h"
#include "observe/stats.h"
#include "profile/log.h"
#include "span/big_cache.h"

/* What slabs hold is live, cached, or the rest: free blocks, ends, and pages that nobody touched.
 */
static uint64_t rest_of_slabs(const struct snapshot *now)
{
    uint64_t slabs = 0, used = 0;
    for (unsigned tier = 0; tier < HAKMEM_TIER_BIG; tier++) {
        slabs += now->tier[tier].committed_bytes;
        used += now->tier[tier].live_bytes + now->tier[tier].cached_bytes;
    }
    return slabs > used ? slabs - used : 0;
}

static void take(struct log_snapshot *to)
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
}

void record_start(uint64_t sample_mean_bytes)
{
    const char *path = environment_record_file();
    if (!path)
        return;
    const struct log_settings settings = {
        .path = path,
        .limit_bytes = (size_t)POLICY(record_mib) * MIB,
        .sample_mean_bytes = sample_mean_bytes,
        .take = take,
        .say = report_say};
    log_start(&settings);
}

void record_stop(void)
{
    log_stop();
}
