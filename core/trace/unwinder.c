/* See unwinder.h. */
#include "trace/unwinder.h"

#include <dlfcn.h>
#include <link.h>

#include "base/atomic.h"
#include "os/identity.h"
#include "os/os.h"
#include "os/symbol.h"

struct unwinder unwinder;

/* Atomic: release on store pairs with acquire on load. */
static enum { UNKNOWN, OPEN, LOST } state;

/* The process id above the number of its threads that use the unwinder now. Atomic, any thread. */
static uint64_t users;

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
    if (ATOMIC_LOAD_RELAXED(&state) != UNKNOWN)
        return true;
    /* By name: linkers warn of static programs that use dlopen. */
    if (symbol_find(RTLD_DEFAULT, &open, "dlopen"))
        library = open("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !symbol_find(library, &unwinder.get_ip, "_Unwind_GetIP") ||
        !symbol_find(library, &unwinder.get_cfa, "_Unwind_GetCFA") ||
        !symbol_find(library, &unwinder.get_register, "_Unwind_GetGR") ||
        !symbol_find(library, &unwinder.find_table, "_Unwind_Find_FDE") ||
        !symbol_find(library, &unwinder.backtrace, "_Unwind_Backtrace") ||
        !symbol_find(RTLD_DEFAULT, &iterate, "dl_iterate_phdr") || !iterate(find_library, NULL))
        return false;
    ATOMIC_STORE_RELEASE(&state, OPEN);
    return true;
}

/* Counts a user in. False: threads of the parent were using it during fork. */
static bool count_in(uint64_t process)
{
    uint64_t seen = ATOMIC_LOAD_RELAXED(&users), next;
    do {
        bool is_new = seen >> 32 != process;
        if (is_new && (uint32_t)seen)
            ATOMIC_STORE_RELEASE(&state, LOST);
        next = is_new ? process << 32 | 1 : seen + 1;
    } while (!__atomic_compare_exchange_n(
        &users, &seen, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return ATOMIC_LOAD_RELAXED(&state) == OPEN;
}

bool unwinder_begin(uint64_t *blocked)
{
    if (ATOMIC_LOAD_ACQUIRE(&state) != OPEN)
        return false;
    *blocked = os_block_signals();
    if (count_in(identity_self() >> 32))
        return true;
    unwinder_end(*blocked);
    return false;
}

void unwinder_end(uint64_t blocked)
{
    __atomic_fetch_sub(&users, 1, __ATOMIC_RELAXED);
    os_restore_signals(blocked);
}
