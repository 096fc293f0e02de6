/* Stands between the core and the system: the linker turns the core's calls of os_map and its
 * kind into calls of the functions here (--wrap), which keep book of what is mapped, refuse when
 * they are told to, and tell the time that the target sets. */
#include "system.h"

#include "fuzz.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/poison.h"
#include "map/page_map.h"
#include "os/limits.h"
#include "os/os.h"
#include "random.h"
#include "thread/heap.h"

enum { RANGES_MAX = 4096, KEYS_MAX = 4, MAPPINGS = 65530 };

struct range {
    uintptr_t start, end;
};

struct system fuzz_system;
bool fuzz_explain;

extern char core_state_begin[], core_state_end[]; /* state.ld */

static struct range ranges[RANGES_MAX]; /* what the core has mapped */
static unsigned range_count;
static pthread_key_t keys[KEYS_MAX]; /* of the core; threads of the harness make none */
static unsigned key_count;
static unsigned scattered_count;

void fuzz_failed(const char *format, ...)
{
    va_list list;

    fputs("fuzz: FAILED: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    abort();
}

/* ---- What is mapped -------------------------------------------------------------------------- */

static void add_range(uintptr_t start, uintptr_t end)
{
    if (range_count == RANGES_MAX)
        fuzz_failed("the core has more than %d mappings", RANGES_MAX);
    ranges[range_count++] = (struct range){start, end};
}

/* Cuts [start, end) out of the ranges, all of which the core must have mapped. */
static void remove_range(uintptr_t start, uintptr_t end)
{
    size_t found = 0;

    for (unsigned i = range_count; i-- > 0;) {
        struct range range = ranges[i];
        uintptr_t from = range.start > start ? range.start : start;
        uintptr_t to = range.end < end ? range.end : end;

        if (from >= to)
            continue;
        found += to - from;
        ranges[i] = ranges[--range_count];
        if (range.start < from)
            add_range(range.start, from);
        if (to < range.end)
            add_range(to, range.end);
    }
    if (found != end - start)
        fuzz_failed(
            "the core unmaps %zu bytes at %#zx, of which %zu are its own", (size_t)(end - start),
            (size_t)start, found);
}

void system_reset(void)
{
    static const struct system first = {
        .cpus = 1,
        .address_space_bytes = SIZE_MAX,
        .mappings = MAPPINGS,
        .random = 1,
        .now_ms = 1000,
    };

    heap_forget();
    for (unsigned i = 0; i < range_count; i++) {
        unpoison((void *)ranges[i].start, ranges[i].end - ranges[i].start);
        munmap((void *)ranges[i].start, ranges[i].end - ranges[i].start);
    }
    range_count = 0;
    while (key_count > 0)
        pthread_key_delete(keys[--key_count]);
    if (madvise(core_state_begin, (size_t)(core_state_end - core_state_begin), MADV_DONTNEED) != 0)
        fuzz_failed("the core's variables cannot be reset");
    scattered_count = 0;
    memcpy(&fuzz_system, &first, offsetof(struct system, written));
    fuzz_system.written[0] = fuzz_system.created_path[0] = '\0';
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static bool refused(void)
{
    if (fuzz_system.refusals_left == 0)
        return false;
    if (fuzz_system.grants > 0) {
        fuzz_system.grants--;
        return false;
    }
    fuzz_system.refusals_left--;
    fuzz_system.refusals++;
    return true;
}

/* ---- What the core calls instead of the system ----------------------------------------------- */

/* __real_X is the core's own function X, __wrap_X what is called in its place. */
#define WRAPPED(result, name, ...)                                                                 \
    result __real_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__);                                                             \
    result __wrap_##name(__VA_ARGS__)

/* ---- Where mappings lie ---------------------------------------------------------------------- */

/* Far below the libraries and the stack, and above what a sanitizer needs. */
static const uintptr_t arena_top = (uintptr_t)64 << 40;

/* The range that overlaps [start, end); NULL: none does. */
static const struct range *overlapping(uintptr_t start, uintptr_t end)
{
    for (unsigned i = 0; i < range_count; i++)
        if (ranges[i].start < end && start < ranges[i].end)
            return &ranges[i];
    return NULL;
}

/* The highest free place below `top`. Linux goes downwards too, but from where depends on what
 * else the process has mapped, and an input must meet the same addresses in each process. */
static void *place_below(uintptr_t top, size_t size, size_t alignment)
{
    uintptr_t start = round_down(top - size, alignment);
    const struct range *taken;

    while ((taken = overlapping(start, start + size)) != NULL)
        start = round_down(taken->start - size, alignment);
    return (void *)start;
}

/* A top of its own for each mapping of a region: further from the others than the class map
 * reaches, so that the core has to go without it. */
static uintptr_t scattered_top(void)
{
    enum { PLACES = 8, DISTANCE_LOG2 = 42 };

    return arena_top + ((uintptr_t)(1 + scattered_count++ % PLACES) << DISTANCE_LOG2);
}

WRAPPED(void *, os_map, size_t size, size_t alignment, void *hint)
{
    size_t rounded = round_up(size, os_page_size());
    bool scatters = fuzz_system.scattered && alignment >= REGION_SIZE;

    if (refused() || rounded < size || rounded > arena_top / 2 || alignment > arena_top / 2)
        return NULL;
    if (!hint || scatters || overlapping((uintptr_t)hint, (uintptr_t)hint + rounded))
        hint = place_below(scatters ? scattered_top() : arena_top, rounded, alignment);
    char *address = __real_os_map(size, alignment, hint);
    if (address)
        add_range((uintptr_t)address, (uintptr_t)address + rounded);
    return address;
}

WRAPPED(void *, os_reserve, size_t size)
{
    char *address = refused() ? NULL : __real_os_reserve(size);
    if (address)
        add_range((uintptr_t)address, (uintptr_t)address + round_up(size, os_page_size()));
    return address;
}

WRAPPED(void *, os_reserve_scattered, size_t size, const void *near)
{
    char *address = refused() ? NULL : __real_os_reserve_scattered(size, near);
    if (address)
        add_range((uintptr_t)address, (uintptr_t)address + round_up(size, os_page_size()));
    return address;
}

WRAPPED(void *, os_map_wiped, size_t size)
{
    char *address = refused() ? NULL : __real_os_map_wiped(size);
    if (address)
        add_range((uintptr_t)address, (uintptr_t)address + round_up(size, os_page_size()));
    return address;
}

WRAPPED(bool, os_make_writable, void *address, size_t size)
{
    return !refused() && __real_os_make_writable(address, size);
}

WRAPPED(bool, os_make_untouchable, void *address, size_t size)
{
    return !refused() && __real_os_make_untouchable(address, size);
}

WRAPPED(bool, os_make_inaccessible, void *address, size_t size)
{
    return !refused() && __real_os_make_inaccessible(address, size);
}

WRAPPED(bool, os_map_anew, void *address, size_t size)
{
    return !refused() && __real_os_map_anew(address, size);
}

WRAPPED(bool, os_guard, void *address, size_t size)
{
    return !fuzz_system.unmarked && !refused() && __real_os_guard(address, size);
}

WRAPPED(bool, os_unguard, void *address, size_t size)
{
    return !refused() && __real_os_unguard(address, size);
}

WRAPPED(bool, os_unmap, void *address, size_t size)
{
    if (refused() || !__real_os_unmap(address, size))
        return false;
    remove_range((uintptr_t)address, (uintptr_t)address + round_up(size, os_page_size()));
    return true;
}

WRAPPED(bool, os_purge, void *address, size_t size)
{
    return !refused() && __real_os_purge(address, size);
}

WRAPPED(enum os_move_result, os_resize, void *address, size_t old_size, size_t new_size)
{
    uintptr_t start = (uintptr_t)address;
    if (refused())
        return OS_MOVE_REFUSED;
    enum os_move_result result = __real_os_resize(address, old_size, new_size);
    if (result == OS_MOVED) {
        remove_range(start, start + old_size);
        add_range(start, start + new_size);
    }
    return result;
}

WRAPPED(enum os_move_result, os_move, void *address, size_t old_size, void *target, size_t new_size)
{
    if (refused())
        return OS_MOVE_REFUSED;
    enum os_move_result result = __real_os_move(address, old_size, target, new_size);
    if (result == OS_MOVED)
        remove_range((uintptr_t)address, (uintptr_t)address + old_size);
    return result;
}

/* Never refused: what is left behind then would be mapped when the next input begins. */
WRAPPED(void, os_discard, void *address, size_t size)
{
    __real_os_discard(address, size);
    remove_range((uintptr_t)address, (uintptr_t)address + round_up(size, os_page_size()));
}

/* Where this system, and not the kernel, has room, so that each run of an input is the same. */
WRAPPED(void *, os_relocate, void *address, size_t old_size, size_t new_size)
{
    char *target = __wrap_os_map(new_size, os_page_size(), NULL);
    if (!target)
        return NULL;
    if (__wrap_os_move(address, old_size, target, new_size) == OS_MOVED)
        return target;
    __wrap_os_discard(target, new_size);
    return NULL;
}

/* A hint that changes no result, but would have 2 MiB cleared for each page that is touched. */
WRAPPED(void, os_advise_huge_pages, void *address, size_t size, bool wanted)
{
    (void)address;
    (void)size;
    (void)wanted;
}

WRAPPED(uint64_t, os_clock_ms, void)
{
    return fuzz_system.now_ms;
}

/* The core draws what it samples by it. */
WRAPPED(uint64_t, os_clock_ns, void)
{
    return (fuzz_system.now_ms + fuzz_system.slept_ms) * 1000000;
}

WRAPPED(void, os_sleep_ms, unsigned ms)
{
    fuzz_system.slept_ms += ms;
}

WRAPPED(unsigned, os_cpu_count, void)
{
    return fuzz_system.cpus;
}

WRAPPED(size_t, os_mapping_limit, void)
{
    return fuzz_system.mappings;
}

/* The places of slabs and blocks follow from it. */
WRAPPED(bool, os_random, void *bytes, size_t size)
{
    unsigned char *next = bytes;

    for (size_t i = 0; fuzz_system.random && i < size; i++)
        next[i] = (unsigned char)(random_next(&fuzz_system.random) >> 56);
    return fuzz_system.random != 0;
}

WRAPPED(size_t, os_address_space_limit, void)
{
    return fuzz_system.address_space_bytes;
}

/* What the harness itself needs differs from run to run. */
WRAPPED(struct os_footprint, os_footprint_read, const char *root)
{
    size_t bytes = 0;
    (void)root;
    for (unsigned i = 0; i < range_count; i++)
        bytes += ranges[i].end - ranges[i].start;
    return (struct os_footprint){bytes, bytes};
}

WRAPPED(size_t, os_resident_peak, void)
{
    return SIZE_MAX;
}

WRAPPED(void, os_write, int fd, const char *text, size_t length)
{
    if (!fuzz_system.captures) {
        __real_os_write(fd, text, length);
        return;
    }
    for (size_t i = 0; i < length; i++, fuzz_system.written_length++)
        if (fuzz_system.written_length < SYSTEM_WRITTEN_BYTES)
            fuzz_system.written[fuzz_system.written_length] = text[i];
}

WRAPPED(bool, os_write_quietly, int fd, const char *text, size_t length)
{
    __wrap_os_write(fd, text, length);
    return true;
}

/* No input may write files. */
WRAPPED(int, os_create_file, const char *path, int mode)
{
    (void)mode;
    snprintf(fuzz_system.created_path, sizeof fuzz_system.created_path, "%s", path);
    return -1;
}

/* Keys would run out: the core makes one for each of its lives. */
WRAPPED(int, pthread_key_create, pthread_key_t *key, void (*destructor)(void *))
{
    int result = __real_pthread_key_create(key, destructor);
    if (result == 0 && range_count > 0 && key_count < KEYS_MAX)
        keys[key_count++] = *key;
    return result;
}
