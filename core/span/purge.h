/* When free memory goes back to the system; page heap, BigCache and bins know how.
 *
 *  - growth: when memory is mapped, as much of what lies free goes back, so that resident memory
 *    does not grow by what is idle; but only what lay free ever since the last such purge, or
 *    blocks of two tiers that come and go in turns would drive each other out;
 *  - idle: at each tick, every `purge_delay_ms`, what lay free and dirty ever since the last tick:
 *    all of it when it is more than `retain_percent` of the memory in use, else half of it; and
 *    as much of the BigCache;
 *  - on request: hakmem_purge and malloc_trim.
 *
 * Nothing goes at the moment it is freed: it may be wanted again at once. Ticks come with slow
 * paths of any thread, and the work of one is spread over several of them. While much lies free
 * the purge is *armed*: then threads see to it that they come by a slow path even when their
 * magazines would serve them for ever (thread/heap.c).
 *
 * No lock of its own: the few words of state are atomic and a race costs a superfluous purge.
 */
#ifndef SPAN_PURGE_H
#define SPAN_PURGE_H

#include "base/atomic.h"
#include "base/macros.h"

/* Called without locks before `bytes` of new memory are touched. Idle is what nobody took since so
 * much was mapped as a sixteenth of what lies free, 2 MiB at least. */
void purge_before_growth(size_t bytes);

/* Called without locks after pages were freed, with the page heap's figures. */
void purge_after_free(size_t dirty_bytes, size_t used_bytes);

/* Bytes of free memory that are no excess beside so many in use. */
size_t purge_keep(size_t used_bytes);

/* In place of the policy's share, so many bytes may stay free in the page heap, in the BigCache and
 * in each class of a shard; SIZE_MAX: all. What is more goes with the next tick. */
void purge_set_kept_bytes(size_t bytes);

/* That number; 0 while the policy decides. */
size_t purge_kept_bytes(void);

/* Bytes to purge out of those that lay unused since the last tick. */
size_t purge_share(size_t unused_bytes, size_t used_bytes);

extern bool purge_is_armed; /* atomic relaxed, any thread */

ALWAYS_INLINE bool purge_armed(void)
{
    return ATOMIC_LOAD_RELAXED(&purge_is_armed);
}

void purge_arm(void);

enum purge_tick { PURGE_TICK_NONE, PURGE_TICK_IDLE, PURGE_TICK_GROWTH };

/* Whether a tick begins: what it has to purge is then decided for page heap and BigCache, and to be
 * decided for bins. After growth a tick is for what is free, not only for what lay unused. */
enum purge_tick purge_tick(uint64_t now_ms);

/* Some of what the tick left to do in the page heap; true when there is more. */
bool purge_step(void);

/* Gives everything back that is free; returns bytes. */
size_t purge_everything(void);

/* False when the system would refuse so many bytes even if everything were given back: then trying
 * is not worth the time. */
bool purge_may_make_room(size_t bytes);

/* Adds to purge_total what was given back by others: pages inside slabs. */
void purge_account(size_t bytes);

/* Bytes given back since the start. */
uint64_t purge_total(void);

#endif
