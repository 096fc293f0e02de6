/* Logs the loaded files (modules) that the addresses of sites lie in. */
#ifndef TRACE_LOG_MODULES_H
#define TRACE_LOG_MODULES_H

#include "base/macros.h"

/* Logs the modules of these addresses that the log does not have yet. The addresses have to be on
 * the stack of the calling thread, or a module could be unloaded meanwhile. */
void modules_note(const uintptr_t *frames, unsigned count, uint64_t time_ns);

/* A hash of the paths of those modules that were not loaded with the program. It tells apart stacks
 * at the same addresses in modules that lay there one after the other. 0: there are none, or no
 * log, or no _dl_find_object. */
uint64_t modules_of_stack(const uintptr_t *frames, unsigned count);

#endif
