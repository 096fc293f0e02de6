/* Lets system calls fail on purpose, for tests: in builds with HAKMEM_FAULTS=1 only. Others do not
 * contain fault.c, and nothing in them refers to it.
 */
#ifndef OS_FAULT_H
#define OS_FAULT_H

#include "os/os.h"

/* Asked before each call that changes mappings: true lets it fail instead of being made. The error
 * number does not matter, since no caller reads it. NULL: nothing fails. Set while no other thread
 * allocates. */
extern bool (*fault_hook)(enum os_call call);

#endif
