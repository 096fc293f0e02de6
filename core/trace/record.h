/* Starts and ends the event log when the environment asks for it. */
#ifndef TRACE_RECORD_H
#define TRACE_RECORD_H

#include "base/macros.h"

/* For the library's constructor: starts the log, whose samples are this far apart on average. */
void record_start(uint64_t sample_mean_bytes);

/* Answers an observer: begins a recording, after ending one that another observer has left behind,
 * or ends it. */
void record_answer(uint32_t request);

#endif
