/* See symbol.h. */
#include "os/symbol.h"

#include <dlfcn.h>
#include <string.h>

/* Absent from statically linked programs. */
#pragma weak dlsym

/* POSIX has data and function pointers of one size; ISO C needs the detour. */
bool symbol_find(void *library, void *function, const char *name)
{
    void *address = dlsym ? dlsym(library, name) : NULL;
    memcpy(function, &address, sizeof address);
    return address != NULL;
}
