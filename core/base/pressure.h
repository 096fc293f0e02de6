/* Pressure: what every layer has to know of memory that goes back to the system.
 *
 * Nothing goes at the moment it is freed: it may be wanted again at once. reclaim/ decides later,
 * in slow paths of any thread, and asks each layer for what it has. The layers below tell it that
 * much lies free (then the purge is *armed*, and threads see to it that they come by a slow path
 * even when their magazines would serve them for ever), how much they gave back, and that they are
 * about to take more from the system. For the last they call up, by the functions at the end of
 * this file; nothing else of reclaim/ is known below it.
 *
 * No lock: the few words of state are atomic and a race costs a superfluous purge.
 */
#ifndef BASE_PRESSURE_H
#define BASE_PRESSURE_H

#include "base/atomic.h"
#include "base/macros.h"
#include "base/policy.h"

/* ---- Armed ----------------------------------------------------------------------------------- */

extern bool pressure_armed_flag; /* atomic relaxed, any thread */

ALWAYS_INLINE bool pressure_is_armed(void)
{
    return ATOMIC_LOAD_RELAXED(&pressure_armed_flag);
}

void pressure_arm(void);
void pressure_disarm(void);

/* ---- Bounds ---------------------------------------------------------------------------------- */

/* Bytes of free memory that are no excess beside so many in use, by `retain_percent`. */
size_t pressure_keep(size_t used_bytes);

/* The same for who has a share of its own in mind: so many bytes, but never so few that it would
 * not be worth a system call. */
size_t pressure_bound(size_t share_bytes);

/* In place of both, so many bytes may stay free in page heap and BigCache together, and in each
 * class of a shard; SIZE_MAX: all. What is more goes with the next tick. */
void pressure_set_kept_bytes(size_t bytes);

/* That number; 0 while the policy decides. */
size_t pressure_kept_bytes(void);

/* ---- Account --------------------------------------------------------------------------------- */

extern uint64_t pressure_given_back; /* atomic relaxed, any thread: bytes since the start */

/* Adds to what was given back. */
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

/* What is resident comes near a limit: then long blocks and empty slabs are not cached, and the
 * page heap takes dirty pages first. Atomic relaxed, any thread. */
extern bool pressure_near_flag;

ALWAYS_INLINE bool pressure_is_near(void)
{
    return UNLIKELY(ATOMIC_LOAD_RELAXED(&pressure_near_flag));
}

/* ---- Calls up, defined in reclaim/ ----------------------------------------------------------- */

/* What a tick is for: memory that lay unused since the last one, or, when memory was mapped while
 * much lay free, what is free. */
enum pressure_tick { PRESSURE_TICK_NONE, PRESSURE_TICK_IDLE, PRESSURE_TICK_GROWTH };

/* Called once, with the first heap of the process: reads the limits of the system. Returns how many
 * CPUs they grant; SIZE_MAX: as many as there are. */
size_t reclaim_read_limits(void);

/* Called without locks before `bytes` of new memory are touched. `big`: at addresses that a big
 * block had before. That is at the expense of free pages, and of the BigCache only for what it has
 * too much: else what does not fit one block would go, and be faulted anew for the next one that it
 * fits. */
void reclaim_before_growth(size_t bytes, bool big);

/* Called without locks, while there is a limit, after so many bytes were taken that are not
 * resident and before they are touched: gives memory back when the limit is near. */
void reclaim_to_limit(size_t bytes);

/* So many bytes were taken, whether there is a limit or not. */
ALWAYS_INLINE void pressure_taken(size_t bytes)
{
    if (UNLIKELY(pressure_is_limited()) && bytes)
        reclaim_to_limit(bytes);
}

/* Called in slow paths, without locks: begins a tick when it is time, and does some of the work
 * that ticks left. */
void reclaim_tick(uint64_t now_ms);

/* Called without locks, on request or when memory runs out: gives back all that is free, but for
 * what running threads cache; returns bytes. */
size_t reclaim_everything(void);

#endif
