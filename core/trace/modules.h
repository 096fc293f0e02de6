/* Finds the loaded file that an address lies in, by the system's map of the process
 * (/proc/self/maps), and reads the file's headers in memory.
 *
 * A crash report cannot trust the process: it asks the system before it reads a byte of a header,
 * and does not ask the dynamic linker, which may be broken, or locked. It uses modules_open to
 * modules_close, by one thread at a time, which crash.c ensures.
 */
#ifndef TRACE_MODULES_H
#define TRACE_MODULES_H

#include "trace/reader.h"

enum { BUILD_ID_BYTES = 32 };

struct module {
    uintptr_t start, end; /* of the file's mappings */
    const char *path;     /* without a NUL at its end */
    size_t path_bytes;
    bool is_there;          /* it cannot be unloaded meanwhile: may be read unchecked */
    uintptr_t bias;         /* an address minus this: as in the file's headers */
    uintptr_t unwind_table; /* address of .eh_frame_hdr; 0: it has none */
    unsigned build_id_bytes;
    uint8_t build_id[BUILD_ID_BYTES];
};

/* Finds the module's range and path in a text of the map. False: the address is in no mapping of a
 * file. */
bool module_find(struct module *module, uintptr_t address, const char *map, size_t map_bytes);

/* Reads the remaining fields from the module's headers; `start` to `is_there` are set. False: there
 * are no headers, and nothing has changed. */
bool module_read(struct module *module);

/* Reads the map; if the system refuses, no address is found. */
void modules_open(void);
void modules_close(void);

/* The module that the address lies in; NULL: none is known. Valid until the close. */
const struct module *modules_find(uintptr_t address);

/* Finds the code at the address for a `struct reader`; false: no module is known there. */
bool modules_code(uintptr_t address, struct code *code);

/* Copies bytes of the process; false: not all of them can be read. */
bool modules_read(uintptr_t address, void *buffer, size_t size);

#endif
