/* See log_snapshots.h. */
#include "trace/log_snapshots.h"

#include <string.h>

#include "os/os.h"
#include "report/process.h"
#include "trace/claim.h"
#include "trace/log_store.h"

enum { FIRST_INTERVAL_NS = 5000000, LONGEST_PAUSE_NS = 5000000000 };
enum { COST_MAX = 200 /* snapshots take at most this fraction of the time: 1 in .. */ };

static uint64_t claim;    /* of claim_take */
static uint64_t last_ns;  /* atomic, any thread */
static uint64_t pause_ns; /* atomic, any thread: from the last snapshot to the next */
static uint64_t interval; /* with the claim: ns */
static uint64_t live; /* atomic, any thread: live bytes of the last snapshot, and the most of any */
static uint64_t most_live;
static uint32_t log_of; /* with the claim: store_number of the log that the above belong to */
static uint32_t count;  /* with the claim: records */

static struct log_snapshot_record *record_of(uint32_t number)
{
    return store_record(LOG_SNAPSHOTS, number);
}

/* Of each two, keeps the one with more live memory, so that peaks stay. */
static void drop_every_second(void)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        const struct log_snapshot_record *first = record_of(2 * i), *second = record_of(2 * i + 1);
        struct log_snapshot_record *to = record_of(i);
        const struct log_snapshot kept =
            first->snapshot.live > second->snapshot.live ? first->snapshot : second->snapshot;
        ATOMIC_STORE_RELEASE(&to->state, LOG_BEING_WRITTEN);
        to->snapshot = kept;
        ATOMIC_STORE_RELEASE(&to->state, LOG_WHOLE);
    }
    for (uint32_t i = count / 2; i < count; i++)
        ATOMIC_STORE_RELEASE(&record_of(i)->state, LOG_FREE);
    count /= 2;
    interval *= 2;
}

static void take_snapshot(uint64_t now_ns)
{
    if (log_of != store_number) {
        log_of = store_number;
        interval = FIRST_INTERVAL_NS;
        ATOMIC_STORE_RELAXED(&most_live, 0);
        count = 0;
    }
    if (!store_reach(LOG_SNAPSHOTS, count)) {
        if (count < 2)
            return;
        drop_every_second();
    }
    struct log_snapshot_record *record = record_of(count);
    memset(&record->snapshot, 0, sizeof record->snapshot);
    record->snapshot.time_ns = now_ns;
    process_status(&record->snapshot.rss, &record->snapshot.rss_highest);
    record->snapshot.log = store_bytes();
    store_settings()->take(&record->snapshot);
    record->fields = sizeof record->snapshot / sizeof(uint64_t);
    ATOMIC_STORE_RELAXED(&live, record->snapshot.live);
    ATOMIC_STORE_RELAXED(&most_live, size_max(record->snapshot.live, most_live));
    ATOMIC_STORE_RELEASE(&record->state, LOG_WHOLE);
    count++;
}

void snapshots_last(uint64_t now_ns)
{
    if (!claim_take(&claim))
        return;
    take_snapshot(now_ns);
    /* The longest pause bounds the effect of an interruption in the meantime. */
    uint64_t pause = size_min((os_clock_ns() - now_ns) * COST_MAX, LONGEST_PAUSE_NS);
    ATOMIC_STORE_RELAXED(&pause_ns, size_max(pause, interval));
    ATOMIC_STORE_RELAXED(&last_ns, now_ns);
    claim_release(&claim);
}

/* Growth by a quarter over the highest snapshot is rare, so it may cost one. */
static bool is_peak(uint64_t grown_bytes)
{
    uint64_t most = ATOMIC_LOAD_RELAXED(&most_live);
    return grown_bytes && ATOMIC_LOAD_RELAXED(&live) + grown_bytes > most + most / 4;
}

void snapshots_tick(uint64_t now_ns, uint64_t grown_bytes)
{
    uint64_t since_ns = os_time_between(now_ns, ATOMIC_LOAD_RELAXED(&last_ns));
    if (since_ns >= ATOMIC_LOAD_RELAXED(&pause_ns) || UNLIKELY(is_peak(grown_bytes)))
        snapshots_last(now_ns);
}
