/* When free memory goes back to the system; page heap and BigCache know how.
 *
 *  - growth: before memory is mapped, free dirty memory that did not fit is given back, so that
 *    resident memory does not grow by what lies idle;
 *  - excess: when more than `retain_percent` of the memory in use lies free and dirty, but not for
 *    the few MiB that the program had in use a moment ago and may take again at once;
 *  - idle: every `purge_delay_ms` half of what is free and dirty goes, and cached big blocks that
 * are older than that;
 *  - on request: hakmem_purge and malloc_trim.
 *
 * No lock of its own: the few words of state are atomic and a race costs a superfluous purge.
 */
#ifndef SPAN_PURGE_H
#define SPAN_PURGE_H

#include "base/macros.h"

/* Called without locks before `bytes` of new address space are mapped. */
void purge_before_growth(size_t bytes);

/* Called without locks after pages were freed, with the page heap's figures. */
void purge_after_free(size_t dirty_bytes, size_t used_bytes);

/* Called now and then from slow paths; looks at the clock. */
void purge_idle(void);

/* Gives everything back that is free; returns bytes. */
size_t purge_everything(void);

/* Adds to purge_total what was given back by others: pages inside slabs. */
void purge_account(size_t bytes);

/* Bytes given back since the start. */
uint64_t purge_total(void);

#endif
