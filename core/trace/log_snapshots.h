/* The state of the tiers over time. */
#ifndef TRACE_LOG_SNAPSHOTS_H
#define TRACE_LOG_SNAPSHOTS_H

#include "base/macros.h"

/* Logs a snapshot if the next one is due, or if a block of `grown_bytes` makes a new peak. */
void snapshots_tick(uint64_t now_ns, uint64_t grown_bytes);

/* Logs a snapshot now, unless another thread does. */
void snapshots_last(uint64_t now_ns);

#endif
