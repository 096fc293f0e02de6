/* The file behind the log: extents of records, which grow while they are written to.
 *
 * All extents of a program's log lie in one range of addresses, reserved once. In a child of fork
 * those of its own file are mapped over the parent's, at the same addresses: a signal handler may
 * fork in the middle of a write, which goes on in the child and must find memory.
 *
 * A thread that finds few records of a kind left makes the next extent, under a claim; the others
 * do not wait. No descriptor is kept, since programs close and list all descriptors: the file is
 * opened by its path each time, and its identity checked.
 */
#ifndef TRACE_LOG_STORE_H
#define TRACE_LOG_STORE_H

#include "os/identity.h"
#include "trace/log_file.h"

/* Reserves the addresses, if there are none yet, and makes the file, or prints why it cannot. */
void store_start(const struct log_settings *settings);

/* Ends the log. The mapping of the file stays: other threads may be writing to it. */
void store_close(void);

/* The settings of store_start, with a copy of the path. */
const struct log_settings *store_settings(void);

/* In a child of fork: makes the child's file. False: another thread does, or it cannot be made. */
bool store_follow(void);

/* Number of the process whose log is mapped; 0: none. Atomic, any thread. */
extern uint32_t store_process;

/* Counts the logs that this process and those before it have opened. Atomic, any thread. */
extern uint32_t store_number;

/* Whether the log that is mapped is that of this process. */
ALWAYS_INLINE bool store_is_open(void)
{
    uint32_t process = ATOMIC_LOAD_ACQUIRE(&store_process);
    return process != 0 && process == identity_process_number();
}

/* True between store_start and the moment when a file could not be made. */
bool store_is_wanted(void);

/* The following are for a store that is open. */

struct log_header *store_header(void);

/* A record by its number; NULL when no extent has it. */
void *store_record(enum log_kind kind, uint32_t number);

/* Makes extents until one has the record; false when there may be no more. */
bool store_reach(enum log_kind kind, uint32_t number);

/* How many records of the kind there is room for now. */
uint32_t store_capacity(enum log_kind kind);

/* Takes the next unused record, and stores its number. NULL: there may be no more. */
void *store_append(enum log_kind kind, uint32_t *number);

/* Bytes of the file. */
size_t store_bytes(void);

#endif
