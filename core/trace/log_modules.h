/* Which loaded files the addresses of sites lie in. */
#ifndef TRACE_LOG_MODULES_H
#define TRACE_LOG_MODULES_H

#include "base/macros.h"

/* Logs the modules of these addresses that the log does not have yet. They have to be on the stack
 * of the calling thread, or a module could go away while it is looked at. */
void modules_note(const uintptr_t *frames, unsigned count, uint64_t time_ns);

/* A number that tells stacks at the same addresses apart, of modules that lay there one after the
 * other: of the paths of those that were not loaded with the program. 0 where there are none, or no
 * log, or nobody tells of modules without a lock. */
uint64_t modules_of_stack(const uintptr_t *frames, unsigned count);

#endif
