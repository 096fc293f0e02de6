/* See symbol.h. */
#include "os/symbol.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "base/macros.h"

/* Absent from statically linked programs. */
#pragma weak dlsym
#pragma weak _DYNAMIC
extern ElfW(Dyn) _DYNAMIC[]; /* of the object that this code was linked into */

/* POSIX has data and function pointers of one size; ISO C needs the detour. */
bool symbol_find(void *library, void *function, const char *name)
{
    void *address = dlsym ? dlsym(library, name) : NULL;
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* True if nothing unmaps the object: a static program, or linked with -z nodelete. */
static bool stays_loaded(void)
{
    const ElfW(Dyn) *entry = _DYNAMIC;
    while (entry && entry->d_tag != DT_NULL && entry->d_tag != DT_FLAGS_1)
        entry++;
    return !entry || entry->d_un.d_val & DF_1_NODELETE;
}

/* The object is found by its name, which a program has not, and opened for good. musl does not have
 * dladdr1, nor a name for the last argument (RTLD_DL_LINKMAP), and unmaps nothing. */
void symbol_stay_loaded(void)
{
    int (*ask)(const void *, Dl_info *, void **, int);
    void *(*open)(const char *, int);
    Dl_info info;
    struct link_map *object;
    if (!stays_loaded() && symbol_find(RTLD_DEFAULT, &ask, "dladdr1") &&
        symbol_find(RTLD_DEFAULT, &open, "dlopen") && ask(_DYNAMIC, &info, (void **)&object, 2) &&
        object->l_name[0])
        (void)open(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}
