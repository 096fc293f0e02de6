/* See loaded.h. */
#include "trace/loaded.h"

#include "base/atomic.h"
#include "os/identity.h"

struct look {
    uintptr_t address;
    struct code *code;
};

static int look_at(struct dl_phdr_info *file, size_t size, void *argument)
{
    struct look *look = argument;
    struct code code = {.range = {UINTPTR_MAX, 0}};
    (void)size;
    for (unsigned i = 0; i < file->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &file->dlpi_phdr[i];
        uintptr_t start = file->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_GNU_EH_FRAME)
            code.table = start;
        if (segment->p_type != PT_LOAD)
            continue;
        code.range.start = size_min(code.range.start, start);
        code.range.end = size_max(code.range.end, start + segment->p_memsz);
    }
    bool found = range_has(&code.range, look->address);
    if (found)
        *look->code = code;
    return found;
}

/* The number of the process above that of its threads that are at it. Atomic, any thread. */
static uint64_t users;
static bool is_lost; /* atomic relaxed, any thread */

static bool begin_use(uint64_t process)
{
    uint64_t seen = ATOMIC_LOAD_RELAXED(&users), next;
    do {
        bool is_new = seen >> 32 != process;
        if (is_new && (uint32_t)seen)
            ATOMIC_STORE_RELAXED(&is_lost, true);
        next = is_new ? process << 32 | 1 : seen + 1;
    } while (!__atomic_compare_exchange_n(
        &users, &seen, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return !ATOMIC_LOAD_RELAXED(&is_lost);
}

static bool look_at_all(struct look *look)
{
    bool found = begin_use(identity_self() >> 32) && dl_iterate_phdr(look_at, look);
    __atomic_fetch_sub(&users, 1, __ATOMIC_RELAXED);
    return found;
}

bool loaded_code(uintptr_t address, struct code *code)
{
    struct dl_find_object found;
    if (!_dl_find_object)
        return look_at_all(&(struct look){address, code});
    if (_dl_find_object((void *)address, &found) != 0)
        return false;
    code->range = (struct range){(uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end};
    code->table = (uintptr_t)found.dlfo_eh_frame;
    return true;
}
