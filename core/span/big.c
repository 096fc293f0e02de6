/* See big.h. */
#include "span/big.h"

#include <string.h>

#include "base/poison.h"
#include "base/policy.h"
#include "map/metadata.h"
#include "os/fatal.h"
#include "os/os.h"
#include "span/purge.h"
#include "span/superslab.h"

static struct big_stats totals; /* big_lock */

static size_t mapping_size(size_t size)
{
    return round_up(size_max(size, REGION_SIZE), os_page_size());
}

/* ---- Huge pages ------------------------------------------------------------------------------ */

/* A program with less than this in big blocks may use small parts of them, as sort does of its
 * buffer for a pipe: each part in a huge page would take 2 MiB, most of the program's memory. */
static const size_t huge_bytes_min = 16 * MIB;

/* So many bytes may be in huge pages on trust: twice as many as were in blocks that had been used
 * whole when they were freed. A huge page for a block of which little is touched wastes its memory,
 * and nobody can tell before: stacks of fibers and ring buffers look like matrices. Atomic relaxed,
 * any thread; a race loses an update. */
static size_t proved;

/* True when the page, all zero once, was written to; one that got zeroes is taken for untouched. */
static bool is_written(const char *page)
{
    const uint64_t *words = (const uint64_t *)page;
    for (unsigned i = 0; i < PAGE_SIZE / sizeof *words; i++)
        if (words[i])
            return true;
    return false;
}

/* True when the block, all zero when it was handed out, seems to have been written to everywhere.
 * Looks at few pages: this is no more than a guess. */
static bool is_dense(const struct big *big)
{
    enum { PLACES = 16, DENSE_PLACES = 12 };
    size_t stride = round_down(big->mapped / PLACES, PAGE_SIZE);
    unsigned written = 0;
    /* Not at the ends: there some programs have made pages unreadable. */
    const char *first = big->region.base + round_down(stride / 2, PAGE_SIZE);
    for (unsigned place = 0; place < PLACES; place++)
        written += is_written(first + place * stride);
    return written >= DENSE_PLACES;
}

/* Learns from a block that is freed. */
static void learn(const struct big *big)
{
    size_t trust = ATOMIC_LOAD_RELAXED(&proved);
    if (!big->zeroed)
        return;
    if (is_dense(big))
        trust = size_min(trust + 2 * big->mapped, TIB);
    else
        trust /= 4;
    ATOMIC_STORE_RELAXED(&proved, trust);
}

static bool is_trusted(size_t size)
{
    return ATOMIC_LOAD_RELAXED(&proved) >= size;
}

/* Takes bytes out of what is trusted; false when there are not so many. */
static bool take_trust(size_t size)
{
    size_t trust = ATOMIC_LOAD_RELAXED(&proved);
    while (trust >= size)
        if (__atomic_compare_exchange_n(
                &proved, &trust, trust - size, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return false;
}

static void set_huge(struct big *big, bool huge)
{
    /* For the whole mapping, or the system could not resize it in one piece. */
    os_advise_huge_pages(big->region.base, big->mapped, huge);
    big->huge = huge;
}

/* Asks for huge pages if they pay; a mapping from the cache keeps those that it has. */
static void advise(struct big *big, bool dense, uint64_t live_bytes)
{
    if (big->huge || live_bytes < huge_bytes_min || !POLICY(huge_pages))
        return;
    if (dense || take_trust(big->mapped))
        set_huge(big, true);
}

/* ---- Mappings -------------------------------------------------------------------------------- */

/* Cuts the mapping off behind `size` bytes, rounded up so that what is left of a huge page is not
 * cut in two; the rest becomes a cached mapping. */
static void split(struct big *big, size_t size)
{
    size_t kept = round_up(size, REGION_SIZE);
    if (big->mapped < kept + REGION_SIZE)
        return;
    struct big *rest = big_register(big->region.base + kept, big->mapped - kept);
    if (!rest)
        return;
    rest->huge = big->huge;
    rest->dirty = big->dirty > kept ? big->dirty - kept : 0;
    big->mapped = kept;
    big->dirty = size_min(big->dirty, kept);
    big_cache_put(rest);
}

/* A mapping that the system has moved or cut off is one of its own there, and a process has 65,530.
 * So many live blocks may have one, a quarter: beyond it bytes are copied, and ends stay. */
enum { APART_MAX = 16384 };

static unsigned apart; /* atomic relaxed, any thread: blocks with `apart` */

/* True when the block may have a mapping of its own. */
static bool stand_apart(struct big *big)
{
    if (big->apart || ATOMIC_ADD_RELAXED(&apart, 1) < APART_MAX)
        return big->apart = true;
    ATOMIC_ADD_RELAXED(&apart, -1);
    return false;
}

static void end_apart(struct big *big)
{
    if (big->apart)
        ATOMIC_ADD_RELAXED(&apart, -1);
    big->apart = false;
}

/* To a fresh mapping, of which no more is touched than was written before. */
static char *copy(const struct big *big, size_t size)
{
    char *target = os_map(size, big->huge ? REGION_SIZE : os_page_size(), NULL);
    if (!target)
        return NULL;
    os_advise_huge_pages(target, size, big->huge);
    for (size_t at = 0; at < big->mapped; at += PAGE_SIZE)
        if (is_written(big->region.base + at))
            memcpy(target + at, big->region.base + at, PAGE_SIZE);
    os_discard(big->region.base, big->mapped);
    return target;
}

/* Moves the mapping to where `size` bytes are free; NULL: it is as before. Huge pages stay whole if
 * their addresses are aligned, for which the target is mapped first. */
static char *move(struct big *big, size_t size)
{
    if (!stand_apart(big))
        return copy(big, size);
    char *target = big->huge ? os_map(size, REGION_SIZE, NULL) : NULL;
    if (!target)
        return os_relocate(big->region.base, big->mapped, size);
    enum os_move_result moved = os_move(big->region.base, big->mapped, target, size);
    if (moved == OS_MOVED)
        return target;
    /* After a failure the target may be gone. Unmapping it could hit what somebody else has
     * mapped there since; so its addresses, untouched, are lost. */
    if (moved == OS_MOVE_REFUSED)
        os_discard(target, size);
    return NULL;
}

/* Makes the mapping `size` bytes long, in place or at another address; false: it is as before. */
static bool extend(struct big *big, size_t size)
{
    size_t growth = size - big->mapped;
    if (!os_resize(big->region.base, big->mapped, size)) {
        struct page_map_spare spare;
        if (!page_map_take_spare(&spare))
            return false;
        page_map_unregister(&big->region);
        char *target = move(big, size);
        if (target)
            big->region.base = target;
        page_map_prepare_by_spare(&spare, big->region.base);
        page_map_register(&big->region);
        if (!target)
            return false;
    }
    big->mapped = size;
    purge_before_growth(growth);
    return true;
}

static struct big *from_cache(size_t size, size_t alignment)
{
    if (size > (size_t)POLICY(big_cache_mib) * MIB)
        return NULL; /* would take in with it what serves others */
    struct big *big = big_cache_take(size, alignment);
    if (!big)
        return NULL;
    if (big->mapped >= size) {
        split(big, size);
        return big;
    }
    if (extend(big, size))
        return big;
    lock_acquire(big_lock());
    big->live = false;
    lock_release(big_lock());
    big_cache_put(big);
    return NULL;
}

static struct big *from_system(size_t size, size_t alignment)
{
    /* Huge pages take aligned addresses. */
    if (is_trusted(size))
        alignment = size_max(alignment, REGION_SIZE);
    char *base = os_map(size, size_max(alignment, os_page_size()), NULL);
    if (!base)
        return NULL;
    purge_before_growth(size);
    struct big *big = big_register(base, size);
    if (!big) {
        os_discard(base, size);
        return NULL;
    }
    lock_acquire(big_lock());
    big->live = true;
    lock_release(big_lock());
    /* The system may give huge pages to who does not ask. */
    set_huge(big, false);
    return big;
}

/* Makes all of it read as zero: by a memset if it will be touched anyway, else by fresh pages: who
 * wants this much zeroed may use little of it. */
static void clear(struct big *big)
{
    bool written = is_trusted(big->dirty) || !os_purge(big->region.base, big->dirty);
    if (written)
        memset(big->region.base, 0, big->dirty);
    else if (big->huge)
        set_huge(big, false);
    big->dirty = 0;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Counts the bytes of a block, and the block if it is new; returns the bytes of all. */
static uint64_t count_block(const struct big *big, bool new)
{
    lock_acquire(big_lock());
    totals.allocated += new;
    uint64_t live = totals.live_bytes += big->mapped;
    lock_release(big_lock());
    return live;
}

void *big_alloc(size_t size, size_t alignment, bool zero)
{
    size = mapping_size(size);
    struct big *big = from_cache(size, alignment);
    if (!big)
        big = from_system(size, alignment);
    if (!big)
        return NULL;
    unpoison(big->region.base, big->mapped);
    if (zero && big->dirty)
        clear(big);
    big->zeroed = big->dirty == 0;
    advise(big, false, count_block(big, true));
    return big->region.base;
}

void big_check_interior(const void *block, const char *call)
{
    const struct region *region = page_map_nearest(block);
    if (!region || region->kind != REGION_BIG)
        return;
    const struct big *big = (const struct big *)region;
    const char *base = big->region.base;
    if (big->live && (const char *)block > base && (const char *)block < base + big->mapped)
        fatal_pointer(call, DEFECT_INTERIOR, block, base, big->mapped);
}

static _Noreturn void fatal_big(const struct big *big, const void *block, const char *call)
{
    big_check_interior(block, call);
    fatal_pointer(
        call, block == big->region.base ? DEFECT_DOUBLE_FREE : DEFECT_FOREIGN, block, NULL, 0);
}

size_t big_size(const struct big *big, const void *block, const char *call)
{
    if (UNLIKELY(block != big->region.base || !big->live))
        fatal_big(big, block, call);
    return big->mapped;
}

void big_free(struct big *big, void *block, const char *call)
{
    lock_acquire(big_lock());
    bool live = big->live && block == big->region.base;
    if (LIKELY(live)) {
        big->live = false;
        totals.freed++;
        totals.live_bytes -= big->mapped;
    }
    lock_release(big_lock());
    if (UNLIKELY(!live))
        fatal_big(big, block, call);
    learn(big);
    end_apart(big);
    big->dirty = big->mapped;
    big_cache_put(big);
    purge_arm();
}

/* Makes the live mapping `size` bytes long; false: it is as before. */
static bool resize(struct big *big, size_t size)
{
    size_t before = big->mapped;
    if (size > before)
        return extend(big, size);
    if (before - size < REGION_SIZE && before - size < before / 8)
        return true;
    char *rest = big->region.base + size;
    if (stand_apart(big) && os_unmap(rest, before - size))
        big->mapped = size;
    else
        os_purge(rest, before - size);
    return true;
}

void *big_resize(struct big *big, size_t size)
{
    /* Not counted meanwhile. Who maps a big block at the addresses that become free takes the lock
     * later: so what this thread did to them has happened before, which else only the system knows.
     */
    lock_acquire(big_lock());
    totals.live_bytes -= big->mapped;
    lock_release(big_lock());
    /* What has been filled and grows will be filled again. */
    bool dense = size > big->mapped && !big->huge && big->zeroed && is_dense(big);
    bool done = resize(big, mapping_size(size));
    uint64_t live = count_block(big, false);
    if (done)
        advise(big, dense, live);
    return done ? big->region.base : NULL;
}

struct big_stats big_stats(void)
{
    lock_acquire(big_lock());
    struct big_stats stats = totals;
    lock_release(big_lock());
    stats.cached_bytes = big_cache_bytes();
    stats.live_blocks = stats.allocated - stats.freed;
    return stats;
}

void big_repair(void)
{
    size_t live_blocks = 0;
    totals.live_bytes = 0;
    for (struct region *region = NULL; (region = page_map_next(region)) != NULL;) {
        const struct big *big = (const struct big *)region;
        if (region->kind != REGION_BIG || !big->live)
            continue;
        live_blocks++;
        totals.live_bytes += big->mapped;
    }
    totals.freed = totals.allocated - size_min(totals.allocated, live_blocks);
    big_cache_repair();
}
