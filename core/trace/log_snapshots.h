/* The state of the tiers over time. */
#ifndef TRACE_LOG_SNAPSHOTS_H
#define TRACE_LOG_SNAPSHOTS_H

#include "base/macros.h"

/* Logs a snapshot when the next one is due, or when a block of so many bytes makes a new peak. */
void snapshots_tick(uint64_t now_ns, uint64_t grown_bytes);

/* Logs one now, unless another thread does. */
void snapshots_last(uint64_t now_ns);

#endif
