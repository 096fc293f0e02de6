/* Starts and ends the event log when the environment asks for it. */
#ifndef TRACE_RECORD_H
#define TRACE_RECORD_H

#include "base/macros.h"

/* From the library's constructor: starts the log, whose samples are this far apart on average. */
void record_start(uint64_t sample_mean_bytes);

/* An observer asks for a recording, which ends one that another observer has left behind, or for
 * its end. */
void record_answer(uint32_t request);

#endif
