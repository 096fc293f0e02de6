/* See big.h. */
#include "span/big.h"

#include <string.h>

#include "base/poison.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "base/sparse.h"
#include "base/tuning.h"
#include "os/fatal.h"
#include "os/os.h"
#include "span/huge.h"
#include "span/page_heap.h"
#include "span/superslab.h"

static size_t mapping_size(size_t size)
{
    return round_up(size_max(size, REGION_SIZE), os_page_size());
}

/* ---- Huge pages ------------------------------------------------------------------------------ */

static void set_huge(struct big *big, bool huge)
{
    /* For the whole mapping: else the system could not resize it in one piece. */
    if (!big_cache_part_with_rest(big))
        return;
    os_advise_huge_pages(big->region.base, big->mapped, huge);
    big->huge = huge;
}

/* A block that was filled and grows will be filled again, as far as it was. */
static void advise_growing(struct big *big, size_t before)
{
    if (!big->huge && big->mapped > before && big->mapped <= 2 * before && POLICY(huge_pages) &&
        big_live_bytes() >= HUGE_LIVE_MIN)
        set_huge(big, true);
}

/* ---- Mappings -------------------------------------------------------------------------------- */

/* A mapping that the system has moved or cut off is a separate one, and a process may have 65,530.
 * OWN_MAPPINGS_MAX live blocks may have one, a quarter: beyond it a growing block is copied, by the
 * caller, and a shrinking one keeps its addresses. */
static unsigned own_mappings; /* atomic relaxed, any thread: blocks with `own_mapping` */

/* True if the block may have a mapping of its own. */
static bool take_own_mapping(struct big *big)
{
    if (big->own_mapping || ATOMIC_ADD_RELAXED(&own_mappings, 1) < OWN_MAPPINGS_MAX)
        return big->own_mapping = true;
    ATOMIC_ADD_RELAXED(&own_mappings, -1);
    return false;
}

static void give_up_own_mapping(struct big *big)
{
    if (big->own_mapping)
        ATOMIC_ADD_RELAXED(&own_mappings, -1);
    big->own_mapping = false;
}

/* Makes the mapping longer where it is or, mostly, elsewhere; NULL: it is as before. To keep huge
 * pages whole, the target, at a multiple of their size, is mapped first. The system counts what the
 * block grows by once more: if a limit has no room for that, it refuses the move, and may leave the
 * target. So both are mapped. */
static char *move_mapping(struct big *big, size_t size)
{
    size_t more = size - big->mapped;
    char *target = big->huge ? os_map(size + more, REGION_SIZE, NULL) : NULL;
    if (!target)
        return os_relocate(big->region.base, big->mapped, size);
    os_discard(target + size, more);
    enum os_move_result moved = os_move(big->region.base, big->mapped, target, size);
    if (moved == OS_MOVED)
        return target;
    /* After a failure the target may be gone. Unmapping it could hit another thread's new mapping
     * there; so its addresses, untouched, are lost. */
    if (moved == OS_MOVE_REFUSED)
        os_discard(target, size);
    return NULL;
}

/* The page map knows the block all the time but while it moves: the old addresses may be another
 * thread's before the call returns. */
static bool move_big(struct big *big, size_t size)
{
    struct page_map_spare spare;
    if (!page_map_take_spare(&spare))
        return false;
    page_map_unregister(&big->region);
    char *target = move_mapping(big, size);
    if (target)
        big->region.base = target;
    page_map_prepare_by_spare(&spare, big->region.base);
    page_map_register(&big->region);
    return target;
}

/* Makes the mapping `size` bytes long, in place or at another address; false: it is as before. */
static bool extend(struct big *big, size_t size)
{
    const char *base = big->region.base;
    bool own = big->own_mapping, may_move = take_own_mapping(big);
    enum os_move_result resized = OS_MOVE_REFUSED;
    /* Else the system prefers to stay by itself when it is asked to move: filters of system calls
     * know no other form. */
    if (!may_move || big->huge)
        resized = os_resize(big->region.base, big->mapped, size);
    /* The program may have made several mappings of it: the system moves none of them. */
    bool done =
        resized == OS_MOVED || (resized == OS_MOVE_REFUSED && may_move && move_big(big, size));
    if (!own && big->region.base == base)
        give_up_own_mapping(big);
    if (!done)
        return false;
    reclaim_before_growth(size - big->mapped, false);
    big->mapped = size;
    return true;
}

/* A cached mapping that fits, or else a shorter one, made longer: so resident memory is used before
 * the system is asked for more. */
static struct big *from_cache(unsigned part, size_t size, size_t alignment)
{
    struct big *big = big_cache_take(part, size, alignment);
    if (big) {
        size_t dirty = ATOMIC_LOAD_RELAXED(&big->dirty);
        if (dirty < big->mapped)
            reclaim_before_growth(big->mapped - dirty, true);
        return big;
    }
    /* A block longer than the whole cache would use up mappings that serve others; the page more
     * that each has does not count. What is made longer may move. */
    if (size / MIB > (size_t)POLICY(big_cache_mib) || alignment > os_page_size() || os_is_watched())
        return NULL;
    big = big_cache_take_shorter(part, size);
    if (!big)
        return NULL;
    if (extend(big, size)) {
        big_cache_recount(big, 0, size);
        return big;
    }
    big_cache_put(big);
    return NULL;
}

static struct big *from_system(unsigned part, size_t size, size_t alignment)
{
    bool huge = huge_is_wanted(size, big_live_bytes() + size);
    /* Huge pages take aligned addresses. */
    alignment = size_max(alignment, huge ? REGION_SIZE : os_page_size());
    char *base = os_map(size, alignment, NULL);
    if (!base)
        return NULL;
    reclaim_before_growth(size, false);
    if (!huge)
        huge_refuse(base, size);
    struct big *big = big_cache_add(part, base, size);
    if (!big) {
        os_discard(base, size);
        return NULL;
    }
    big->huge = huge;
    if (huge && !huge_is_unasked())
        os_advise_huge_pages(base, big->mapped, true);
    return big;
}

/* Clears pages where they are not zero: so untouched ones take no memory, and others are not
 * faulted anew. Returns how many of USE_PLACES even places that is. */
static unsigned sweep(struct big *big, size_t dirty)
{
    size_t cleared = sparse_clear(big->region.base, dirty);
    bool touched = cleared >= dirty / SWEPT_PART;
    big->swept = touched ? SWEEPS : big->swept - (big->swept != 0);
    return (unsigned)(cleared / (dirty / USE_PLACES));
}

/* Makes all of it read as zero, where so many places were written to: by fresh pages, if it was
 * hardly touched. */
static void clear(struct big *big, size_t dirty, unsigned written)
{
    bool touched = written >= (dirty > SWEEP_LONG ? SWEEP_LONG_TOUCHED : SWEEP_TOUCHED);
    if (touched || os_is_watched() || !os_purge(big->region.base, dirty))
        sweep(big, dirty);
    else if (big->huge)
        set_huge(big, false);
}

/* Learns how far so many bytes of a freed block were used, and clears them if asked to. */
static void use_again(struct big *big, size_t dirty, bool zero)
{
    /* A look at pages that were never touched costs a fault each, and one at others little. */
    if (dirty < big->mapped / 2)
        big->swept = 0;
    bool sweeps = zero && big->swept;
    unsigned written = 0;
    if (sweeps)
        written = sweep(big, dirty);
    else if (big->zeroed || zero)
        written = huge_count_written(big->region.base, dirty);
    if (big->zeroed)
        huge_learn(written, dirty);
    if (zero && !sweeps)
        clear(big, dirty, written);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

void *big_alloc(unsigned part, size_t size, size_t alignment, bool zero)
{
    size = mapping_size(size);
    struct big *big = from_cache(part, size, alignment);
    if (!big)
        big = from_system(part, size, alignment);
    if (!big)
        return NULL;
    unpoison(big->region.base, big->mapped);
    size_t dirty = size_min(ATOMIC_LOAD_RELAXED(&big->dirty), big->mapped);
    if (dirty)
        use_again(big, dirty, zero);
    pressure_taken(big->mapped - (zero ? 0 : dirty), true);
    big->zeroed = zero || !dirty;
    if (dirty < big->mapped / 2 && !big->huge && huge_is_wanted(big->mapped, big_live_bytes()))
        set_huge(big, true);
    return big->region.base;
}

void big_check_interior(const void *block, const char *call)
{
    const struct region *region = page_map_nearest(block);
    if (!region || region->kind != REGION_BIG)
        return;
    const struct big *big = (const struct big *)region;
    const char *base = big->region.base;
    if ((const char *)block <= base || (const char *)block >= base + big->mapped)
        return;
    if (big->live)
        fatal_pointer(call, DEFECT_INTERIOR, block, base, big->mapped);
    /* The block was freed. */
    if (big->cached)
        fatal_pointer(call, DEFECT_DOUBLE_FREE, block, NULL, 0);
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

static void cache(struct big *big)
{
    give_up_own_mapping(big);
    big_cache_put(big);
    pressure_arm();
}

void big_free(struct big *big, void *block, const char *call)
{
    if (UNLIKELY(!big_cache_retire(big, block)))
        fatal_big(big, block, call);
    cache(big);
}

/* True if the block would lose too little for a system call. */
static bool keeps_mapping(const struct big *big, size_t size)
{
    size_t rest = big->mapped - size;
    return size <= big->mapped && rest < REGION_SIZE && rest < big->mapped / HEADROOM_PART;
}

/* Gives back an end that is too short for a rest; if the system refuses, at least its memory. */
static void cut(struct big *big, size_t size)
{
    size_t whole = big->mapped;
    big->mapped = size;
    KEEP_STORE_ORDER(); /* a fork may fall in between */
    if (os_unmap(big->region.base + size, whole - size)) {
        big_cache_recount(big, whole, size);
    } else {
        big->mapped = whole;
        os_purge(big->region.base + size, whole - size);
    }
}

static bool resize_mapping(struct big *big, size_t size)
{
    size_t before = big->mapped;
    if (keeps_mapping(big, size))
        return true;
    /* One with advice stays as long as it is, since the end may be all that shows the advice when
     * the block is freed. */
    if (size < before && !(os_is_one_mapping(big->region.base, before) && take_own_mapping(big))) {
        os_purge(big->region.base + size, before - size);
        return true;
    }
    /* A thread that maps a big block at addresses freed here takes the part's lock later, which
     * orders this thread's accesses before. */
    if (big_cache_fit(big, size)) {
        if (size < before && big->mapped >= size + UNIT_SIZE && !big->huge)
            cut(big, size);
        return true;
    }
    size_t whole = big->mapped;
    if (extend(big, size))
        big_cache_recount(big, whole, size);
    else
        big_cache_fit(big, before);
    return big->mapped >= size;
}

void *big_resize(struct big *big, size_t size)
{
    size_t before = big->mapped;
    bool done = resize_mapping(big, mapping_size(size));
    pressure_taken(big->mapped - size_min(big->mapped, before), true);
    if (!done)
        return NULL;
    unpoison(big->region.base, big->mapped);
    advise_growing(big, before);
    return big->region.base;
}
