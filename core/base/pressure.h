/* Pressure: the state by which all layers share when memory goes back to the system.
 *
 * Memory does not go at the moment it is freed: it may be wanted again at once. reclaim/ decides
 * later, in slow paths of any thread, and asks each layer for its free memory. The layers below
 * report that much lies free (then the purge is *armed*, and threads take slow paths even if their
 * magazines could serve them for ever), how much they gave back, and that they are about to take
 * more from the system. For the last they call up, by the functions at the end of this file; they
 * know nothing else of reclaim/.
 *
 * No lock: the few words of state are atomic and a race costs a superfluous purge.
 */
#ifndef BASE_PRESSURE_H
#define BASE_PRESSURE_H

#include "base/atomic.h"
#include "base/macros.h"
#include "base/policy.h"

/* ---- Armed ----------------------------------------------------------------------------------- */

/* ARMED: slow paths look after free memory, since there is much. ARMED_ANEW: some came free since
 * the last round of the engine began; ARMED_BEFORE: or since the one before, so that it may have
 * been too young for this round. */
enum armed { ARMED = 1, ARMED_ANEW = 2, ARMED_BEFORE = 4 };

/* Of enum armed; atomic relaxed, any thread. */
extern uint8_t pressure_armed;

ALWAYS_INLINE bool pressure_is_armed(void)
{
    return ATOMIC_LOAD_RELAXED(&pressure_armed) & ARMED;
}

ALWAYS_INLINE bool pressure_is_armed_anew(void)
{
    return ATOMIC_LOAD_RELAXED(&pressure_armed) & ARMED_ANEW;
}

void pressure_arm(void);       /* memory came free */
void pressure_arm_still(void); /* a look finds much free */
void pressure_begin_round(void);
void pressure_settle(void); /* what the rounds since it came free have left may stay */

/* What the engine does (reclaim/engine.h): nothing; it waits for a slow path to go on with its
 * round; one of a thread does, and no other. */
enum engine { ENGINE_RESTS, ENGINE_WAITS, ENGINE_WORKS };

/* An enum engine; atomic: acquire when a thread begins to work, release at its end. */
extern uint8_t pressure_engine;

/* The helper (reclaim/background.h): there is none; it exists; it is about to end, unless a slow
 * path finds more to do; the system refused one lately. */
enum helper { HELPER_NONE, HELPER_WORKS, HELPER_ENDS, HELPER_REFUSED };

/* An enum helper; atomic relaxed, any thread. */
extern uint8_t pressure_helper;

ALWAYS_INLINE bool pressure_waits(void)
{
    return ATOMIC_LOAD_RELAXED(&pressure_engine) == ENGINE_WAITS;
}

/* In a child of fork, where neither the thread that worked nor the helper may exist. */
void pressure_begin_process(void);

/* ---- Bounds ---------------------------------------------------------------------------------- */

/* How many bytes may stay free beside `used_bytes` in use, by `retain_percent`. */
size_t pressure_keep(size_t used_bytes);

/* How many bytes may stay free in a layer with a share of its own: `share_bytes`, but never so few
 * that giving them back would not repay a system call. */
size_t pressure_bound(size_t share_bytes);

/* In place of both: `bytes` may stay free in page heap and BigCache together, and in each class of
 * a shard; SIZE_MAX: all. The excess goes with the next tick. */
void pressure_set_kept_bytes(size_t bytes);

/* The number set; 0 while the policy decides. */
size_t pressure_kept_bytes(void);

extern size_t pressure_used_bytes; /* atomic relaxed, any thread */

/* The memory in slabs, when it was last added up: at a tick, and before memory grew. Big blocks do
 * not count: caches hold none, and a program may touch little of them. */
ALWAYS_INLINE size_t pressure_used(void)
{
    return ATOMIC_LOAD_RELAXED(&pressure_used_bytes);
}

/* ---- Account --------------------------------------------------------------------------------- */

extern uint64_t pressure_given_back; /* atomic relaxed, any thread: bytes since the start */

/* Adds to the bytes given back. */
void pressure_account(size_t bytes);

/* Bytes given back since the start. */
uint64_t pressure_total(void);

/* ---- Limits ---------------------------------------------------------------------------------- */

/* The system sets the process a limit; atomic relaxed, any thread. */
extern bool pressure_limited_flag;

ALWAYS_INLINE bool pressure_is_limited(void)
{
    return ATOMIC_LOAD_RELAXED(&pressure_limited_flag) || POLICY(limit_mib);
}

/* Resident memory comes near a limit: then long blocks and empty slabs are not cached. Atomic
 * relaxed, any thread. */
extern bool pressure_near_flag;

ALWAYS_INLINE bool pressure_is_near(void)
{
    /* A limit may be lifted while another thread looks whether it is near. */
    return UNLIKELY(ATOMIC_LOAD_RELAXED(&pressure_near_flag)) && pressure_is_limited();
}

/* ---- Calls up, defined in reclaim/ ----------------------------------------------------------- */

/* Called once, with the first heap of the process: reads the limits of the system. Returns how many
 * CPUs they grant; SIZE_MAX: as many as there are. */
size_t reclaim_read_limits(void);

/* Called without locks before `bytes` of new memory are touched. `big`: at addresses that a big
 * block had before; then only free pages go, and not the BigCache, whose mappings that do not fit
 * this block would be faulted anew for the next one. */
void reclaim_before_growth(size_t bytes, bool big);

/* Called without locks after `bytes` of non-resident memory were taken, and before they are
 * touched: gives free memory back in their place, unless a `big` block takes them. */
void reclaim_for_taken(size_t bytes, bool big);

/* reclaim_for_taken, unless nothing was taken. */
ALWAYS_INLINE void pressure_taken(size_t bytes, bool big)
{
    if (bytes)
        reclaim_for_taken(bytes, big);
}

/* How many bytes of pages without memory may be taken before what caches hold should serve: so that
 * no more is resident than lately; SIZE_MAX: any. */
size_t reclaim_clean_most(void);

/* A step of that, the cheapest first, and never so much that a caller would notice the time: empty
 * slabs, and then stacked blocks, too, return to the page heap; true: there were some. The single
 * blocks of `heap`, if it is not NULL, go first, since each keeps the pages around it from serving
 * a longer one. */
enum { ROOM_STEPS = 2 };
struct heap;
bool reclaim_make_room(struct heap *heap, unsigned step);

/* Called in slow paths, without locks: does a little of what the engine has to do. */
void reclaim_tick(uint64_t now_ms);

#endif
