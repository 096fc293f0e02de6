/* Which loaded file an address lies in, for who cannot trust the process: it is about to end, since
 * its memory is broken.
 *
 * The system's map of the process tells (/proc/self/maps), and the headers of the files in memory,
 * of which no byte is read without asking the system whether it can be. The dynamic linker is not
 * asked: it may be what broke, or hold its lock.
 *
 * One thread at a time, from modules_open to modules_close; crash.c sees to it.
 */
#ifndef TRACE_MODULES_H
#define TRACE_MODULES_H

#include "base/macros.h"

enum { MODULE_PATH_BYTES = 256, BUILD_ID_BYTES = 32 };

struct module {
    uintptr_t start, end;   /* of what is mapped of the file */
    uintptr_t bias;         /* what to take from an address to get that in the file */
    uintptr_t unwind_table; /* where .eh_frame_hdr is; 0: it has none */
    unsigned build_id_bytes;
    uint8_t build_id[BUILD_ID_BYTES];
    char path[MODULE_PATH_BYTES]; /* its beginning, if it is longer */
};

/* Reads the map; if the system does not let us, no address is found. */
void modules_open(void);
void modules_close(void);

/* The module that the address lies in; NULL: none, or nothing is known. Valid until the close. */
const struct module *modules_find(uintptr_t address);

/* Copies bytes of the process if they can be read; false: not all of them. */
bool modules_read(uintptr_t address, void *buffer, size_t size);

#endif
