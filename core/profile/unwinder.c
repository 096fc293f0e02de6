/* See unwinder.h. */
#include "profile/unwinder.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* Absent from statically linked programs. */
#pragma weak dlsym

struct unwinder unwinder;

static bool look_up(void *library, void *function, const char *name)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static int find_library(struct dl_phdr_info *module, size_t size, void *unused)
{
    struct range range = {UINTPTR_MAX, 0};
    (void)size, (void)unused;
    for (unsigned i = 0; i < module->dlpi_phnum; i++) {
        uintptr_t start = module->dlpi_addr + module->dlpi_phdr[i].p_vaddr;
        if (module->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        range.start = size_min(range.start, start);
        range.end = size_max(range.end, start + module->dlpi_phdr[i].p_memsz);
    }
    bool found = range_has(&range, (uintptr_t)unwinder.find_table);
    if (found)
        unwinder.library = range;
    return found;
}

bool unwinder_open(void)
{
    int (*iterate)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    void *(*open)(const char *, int), *library = NULL;
    if (unwinder.is_open)
        return true;
    /* By name: linkers warn of programs that have it and are static. */
    if (dlsym && look_up(RTLD_DEFAULT, &open, "dlopen"))
        library = open("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !look_up(library, &unwinder.get_ip, "_Unwind_GetIP") ||
        !look_up(library, &unwinder.get_cfa, "_Unwind_GetCFA") ||
        !look_up(library, &unwinder.get_register, "_Unwind_GetGR") ||
        !look_up(library, &unwinder.find_table, "_Unwind_Find_FDE") ||
        !look_up(library, &unwinder.backtrace, "_Unwind_Backtrace") ||
        !look_up(RTLD_DEFAULT, &iterate, "dl_iterate_phdr") || !iterate(find_library, NULL))
        return false;
    __atomic_store_n(&unwinder.is_open, true, __ATOMIC_RELEASE);
    return true;
}
