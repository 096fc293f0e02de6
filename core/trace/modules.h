/* Which loaded file an address lies in, what the system's map of the process (/proc/self/maps) and
 * the headers of the file in memory say of it.
 *
 * Who asks for a report of a crash cannot trust the process: of the headers no byte is read without
 * asking the system whether it can be, and the dynamic linker is not asked: it may be what broke,
 * or hold its lock. For them are modules_open to modules_close, for one thread at a time; crash.c
 * sees to it.
 */
#ifndef TRACE_MODULES_H
#define TRACE_MODULES_H

#include "base/macros.h"

enum { BUILD_ID_BYTES = 32 };

struct module {
    uintptr_t start, end; /* of what is mapped of the file */
    const char *path;     /* where it was found, without a NUL at its end */
    size_t path_bytes;
    bool is_there;          /* it cannot go away meanwhile, and may be read at once */
    uintptr_t bias;         /* what to take from an address to get that in the file */
    uintptr_t unwind_table; /* where .eh_frame_hdr is; 0: it has none */
    unsigned build_id_bytes;
    uint8_t build_id[BUILD_ID_BYTES];
};

/* Finds the module in a text of the map: where it lies, and its path in there. False: none, or the
 * address is in memory of no file. */
bool module_find(struct module *module, uintptr_t address, const char *map, size_t map_bytes);

/* Reads the rest from the headers of the module, of which what stands first is known. False: there
 * are none, and nothing has changed. */
bool module_read(struct module *module);

/* Reads the map; if the system does not let us, no address is found. */
void modules_open(void);
void modules_close(void);

/* The module that the address lies in; NULL: none, or nothing is known. Valid until the close. */
const struct module *modules_find(uintptr_t address);

/* Copies bytes of the process if they can be read; false: not all of them. */
bool modules_read(uintptr_t address, void *buffer, size_t size);

#endif
