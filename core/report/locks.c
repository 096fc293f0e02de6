/* See locks.h. The linker redirects all calls of lock_acquire and lock_release to the functions
 * here (`--wrap`, cmake/HakmemLibraries.cmake). */
#include "report/locks.h"

#include <string.h>

#include "base/atomic.h"
#include "map/metadata.h"
#include "os/identity.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/syscall.h"
#include "os/ticks.h"
#include "reclaim/limit.h"
#include "report/cycles.h"
#include "slab/shard.h"
#include "span/big_part.h"
#include "span/page_heap.h"
#include "thread/registry.h"

const char lock_kind_names[LOCK_KINDS][12] = {
    [LOCK_BIN] = "bin",           [LOCK_PAGE_HEAP] = "page_heap", [LOCK_BIG] = "big",
    [LOCK_METADATA] = "metadata", [LOCK_REGISTRY] = "registry",
};

/* ---- Counting -------------------------------------------------------------------------------- */

/* No critical section takes that long: the system has taken the processor from the holder. Such
 * holds are counted apart, since a machine with a processor for each thread has none. */
static const uint64_t interrupted_ns = 100000;

/* Constant after the constructor; 0 before, when no hold counts as interrupted. */
static uint64_t interrupted_ticks;

__attribute__((constructor)) static void start_clock(void)
{
    const uint64_t long_enough_ns = 50000;
    uint64_t now_ns, start_ns = os_clock_ns(), start_ticks = cpu_ticks();
    ticks_start();
    while ((now_ns = os_clock_ns()) < start_ns + long_enough_ns)
        cpu_relax();
    interrupted_ticks = (cpu_ticks() - start_ticks) * interrupted_ns / (now_ns - start_ns);
}

void __real_lock_acquire(struct lock *lock);
void __wrap_lock_acquire(struct lock *lock);
void __wrap_lock_acquire(struct lock *lock)
{
    struct lock_profile *profile = lock->profile;
    uint32_t open = 0, self = identity_thread(identity_self());
    if (UNLIKELY(!__atomic_compare_exchange_n(
            &lock->word, &open, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))) {
        uint64_t since = cpu_ticks();
        __real_lock_acquire(lock);
        uint64_t ticks = cpu_ticks() - since;
        COUNTER_ADD(&profile->waits, 1);
        COUNTER_ADD(&profile->waited_ticks, ticks);
        cycles_lock_waited(ticks);
    }
    COUNTER_ADD(&profile->acquisitions, 1);
    if (profile->holder != self) {
        COUNTER_ADD(&profile->handovers, profile->holder != 0);
        profile->holder = self;
    }
    profile->since_ticks = cpu_ticks();
}

void __real_lock_release(struct lock *lock);
void __wrap_lock_release(struct lock *lock);
void __wrap_lock_release(struct lock *lock)
{
    struct lock_profile *profile = lock->profile;
    uint64_t held = cpu_ticks() - profile->since_ticks;
    if (interrupted_ticks && held > interrupted_ticks)
        COUNTER_ADD(&profile->interrupted, 1);
    else
        COUNTER_ADD(&profile->held_ticks, held);
    __real_lock_release(lock);
}

/* Locks are measured as if the machine had a CPU for each shard. */
unsigned __real_os_cpu_count(void);
unsigned __wrap_os_cpu_count(void);
unsigned __wrap_os_cpu_count(void)
{
    return POLICY(shards) ? (unsigned)POLICY(shards) : __real_os_cpu_count();
}

size_t __real_reclaim_read_limits(void);
size_t __wrap_reclaim_read_limits(void);
size_t __wrap_reclaim_read_limits(void)
{
    size_t granted = __real_reclaim_read_limits();
    return POLICY(shards) ? SIZE_MAX : granted;
}

/* ---- Adding up ------------------------------------------------------------------------------- */

static void read_profile(const struct lock_profile *profile, struct lock_usage *usage)
{
    usage->acquisitions = ATOMIC_LOAD_RELAXED(&profile->acquisitions);
    usage->waits = ATOMIC_LOAD_RELAXED(&profile->waits);
    usage->handovers = ATOMIC_LOAD_RELAXED(&profile->handovers);
    usage->interrupted = ATOMIC_LOAD_RELAXED(&profile->interrupted);
    usage->waited_ns = ticks_ns(ATOMIC_LOAD_RELAXED(&profile->waited_ticks));
    usage->held_ns = ticks_ns(ATOMIC_LOAD_RELAXED(&profile->held_ticks));
}

static void add_lock(struct lock_kind_usage *kind, const struct lock *lock)
{
    struct lock_usage usage;
    read_profile(lock->profile, &usage);
    if (!usage.acquisitions)
        return;
    kind->locks++;
    kind->all.acquisitions += usage.acquisitions;
    kind->all.waits += usage.waits;
    kind->all.handovers += usage.handovers;
    kind->all.interrupted += usage.interrupted;
    kind->all.waited_ns += usage.waited_ns;
    kind->all.held_ns += usage.held_ns;
    if (kind->busy.held_ns <= usage.held_ns)
        kind->busy = usage;
    if (kind->met.handovers <= usage.handovers)
        kind->met = usage;
}

void locks_collect(enum lock_kind kind, struct lock_kind_usage *usage)
{
    memset(usage, 0, sizeof *usage);
    usage->parts = 1;
    switch (kind) {
    case LOCK_BIN:
        usage->parts = SHARD_MAX;
        for (unsigned bin = 0; bin < shard_places(); bin++)
            add_lock(usage, &bin_at(bin)->lock);
        break;
    case LOCK_BIG:
        usage->parts = BIG_PARTS;
        for (unsigned part = 0; part < big_cache_parts(); part++)
            add_lock(usage, &big_parts[part].lock);
        break;
    case LOCK_PAGE_HEAP:
        usage->parts = SHARD_PARTS_MAX;
        for (unsigned part = 0; part < page_heap_parts(); part++)
            add_lock(usage, &page_heap_part[part].lock);
        break;
    case LOCK_METADATA:
        add_lock(usage, &metadata.lock);
        break;
    case LOCK_REGISTRY:
        add_lock(usage, &registry.lock);
        break;
    case LOCK_KINDS:
        break;
    }
}

/* Ticks of `rounds` rounds at the lock, with the profile or without. */
static uint64_t time_rounds(struct lock *lock, unsigned rounds, bool profiled)
{
    uint64_t since = cpu_ticks();
    for (unsigned i = 0; i < rounds; i++) {
        if (profiled) {
            lock_acquire(lock);
            lock_release(lock);
        } else {
            __atomic_exchange_n(&lock->word, 1, __ATOMIC_ACQUIRE);
            __atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE);
        }
    }
    return cpu_ticks() - since;
}

uint64_t locks_profile_cost_ps(void)
{
    enum { TRIES = 5, ROUNDS = 200 };
    static __thread struct lock lock;
    uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
    for (int i = 0; i < 2 * TRIES; i++) {
        uint64_t ticks = time_rounds(&lock, ROUNDS, i % 2);
        if (best[i % 2] > ticks)
            best[i % 2] = ticks;
    }
    return best[1] > best[0] ? ticks_ns((best[1] - best[0]) * 1000) / ROUNDS : 0;
}
