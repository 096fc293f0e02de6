/* Finds loaded files by the dynamic linker, without waiting for a lock if it can.
 *
 * glibc from 2.35 on needs none (_dl_find_object). Other C libraries take the linker's lock
 * (dl_iterate_phdr), so a caller holds nothing that the lock's holder may wait for.
 */
#ifndef TRACE_LOADED_H
#define TRACE_LOADED_H

#include <dlfcn.h>
#include <link.h>

#include "trace/reader.h"

#ifndef DLFO_STRUCT_HAS_EH_DBASE
/* An older C library may be met by a newer one when the program runs. */
struct dl_find_object {
    unsigned long long dlfo_flags;
    void *dlfo_map_start, *dlfo_map_end;
    struct link_map *dlfo_link_map;
    void *dlfo_eh_frame;
    unsigned long long reserved[7];
};
#endif

/* NULL: the C library has none. */
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));

/* For `struct reader`. False also in a child of fork, if another thread of the parent had the lock
 * through this function. */
bool loaded_code(uintptr_t address, struct code *code);

#endif
