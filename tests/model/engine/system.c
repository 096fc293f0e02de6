/* The system below the core: os.h, the end of the program, thread keys, and the model of the lock.
 *
 * Memory comes from two places: regions of 2 MiB, of which the lowest free ones are mapped, so that
 * addresses are used again; and small mappings, from an area of each thread's own.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "api/fallback.h"
#include "base/assert.h"
#include "base/bits.h"
#include "engine/engine.h"
#include "engine/report.h"
#include "engine/search.h"
#include "map/page_map.h"
#include "os/fatal.h"
#include "os/limits.h"
#include "os/os.h"

/* A class map, and two threads that make the wide one. */
enum { REGIONS = 12, RESERVATIONS = 3, AREA_BYTES = 8 << 20 };

#define CODE __builtin_return_address(0)

static char *regions;
static struct region_state {
    bool used;
    struct clock unmapped; /* what happened before its last unmapping */
} region_states[REGIONS], region_states_at_start[REGIONS];

static unsigned reservations, reservations_at_start;
static unsigned failures, failures_left; /* of os_make_writable */
static bool threads_refused;

static char *areas;
static size_t area_used[CLOCKS], area_used_at_start[CLOCKS];

static struct {
    uint32_t id;
    uint64_t time_ms;
    void *key_value;
} threads[CLOCKS];

unsigned system_locks_held[CLOCKS];

static void (*key_destructor)(void *);

/* An address that leaves room below it in the class map's window. */
static const uintptr_t regions_base = (uintptr_t)1 << 44;

static void *reserve(void *hint, size_t size)
{
    void *memory = mmap(
        hint, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || (hint && memory != hint))
        model_fail("the checker's own memory could not be mapped");
    return memory;
}

void system_init(void)
{
    regions = reserve((void *)regions_base, REGIONS * REGION_SIZE);
    areas = reserve(NULL, CLOCKS * AREA_BYTES);
    for (int i = 0; i < CLOCKS; i++) {
        threads[i].id = 100 + (uint32_t)i;
        threads[i].time_ms = 1;
    }
}

/* The first execution shows what the preparation has used. */
void system_start(void)
{
    static bool prepared;
    if (!prepared) {
        memcpy(region_states_at_start, region_states, sizeof region_states);
        memcpy(area_used_at_start, area_used, sizeof area_used);
        reservations_at_start = reservations;
    }
    prepared = true;
    failures_left = failures;
    reservations = reservations_at_start;
    memcpy(region_states, region_states_at_start, sizeof region_states);
    memcpy(area_used, area_used_at_start, sizeof area_used);
    for (int i = 0; i < CLOCKS; i++)
        system_thread_starts(i);
}

void system_thread_starts(int thread)
{
    threads[thread].id = 100 + (uint32_t)thread;
    system_locks_held[thread] = 0;
    threads[thread].time_ms = 1;
    threads[thread].key_value = NULL;
}

static uint32_t *wiped; /* by fork */

void system_fork(int thread)
{
    threads[thread].id += 100;
    if (wiped)
        atomic_store(wiped, sizeof *wiped, 0, __ATOMIC_RELAXED, CODE);
}

void model_set_time(uint64_t time_ms)
{
    threads[current].time_ms = time_ms;
}

void model_fail_protect(unsigned count)
{
    failures = count;
}

void model_refuse_threads(void)
{
    threads_refused = true;
}

char *model_region(unsigned index)
{
    return regions + index * REGION_SIZE;
}

bool model_region_is_mapped(unsigned index)
{
    return region_states[index].used;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Invariant 3: no system call under a lock. */
static void check_system_call(const void *code)
{
    if (system_locks_held[current])
        model_fail("a system call under a lock, at %s", report_place(code));
}

static struct op mapping_op(const char *name, const void *code)
{
    return (struct op){OP_WRITE, region_states, name, code};
}

static unsigned region_count(size_t size)
{
    return (unsigned)(round_up(size, REGION_SIZE) / REGION_SIZE);
}

static void *map_regions(size_t size, const void *code)
{
    unsigned count = region_count(size), first = 0, found = 0;
    search_step(mapping_op("map", code));
    for (unsigned i = 0; i < REGIONS && found < count; i++) {
        found = region_states[i].used ? 0 : found + 1;
        first = i + 1 - found;
    }
    if (found < count)
        return NULL;
    for (unsigned i = first; i < first + count; i++) {
        region_states[i].used = true;
        clock_join(shadow_clock(), &region_states[i].unmapped);
    }
    shadow_range(model_region(first), size, RANGE_MAPPED, code);
    return model_region(first);
}

static bool is_region(const void *address)
{
    return (size_t)((const char *)address - regions) < REGIONS * REGION_SIZE;
}

static void free_regions(char *address, size_t size)
{
    unsigned first = (unsigned)((size_t)(address - regions) / REGION_SIZE);
    for (unsigned i = first; i < first + region_count(size); i++) {
        region_states[i].used = false;
        region_states[i].unmapped = *shadow_clock();
    }
    shadow_tick();
}

void *os_map(size_t size, size_t alignment, void *hint)
{
    (void)hint;
    check_system_call(CODE);
    if (size >= REGION_SIZE)
        return map_regions(size, CODE);
    size_t start = round_up(area_used[current], alignment);
    if (start + size > AREA_BYTES)
        return NULL;
    area_used[current] = start + size;
    char *memory = areas + (size_t)current * AREA_BYTES + start;
    shadow_range(memory, size, RANGE_MAPPED, CODE);
    return memory;
}

/* One word: that is all that the core asks for. */
void *os_map_wiped(size_t size)
{
    return wiped = os_map(size, sizeof(uint64_t), NULL);
}

bool os_unmap(void *address, size_t size)
{
    check_system_call(CODE);
    if (is_region(address))
        search_step(mapping_op("unmap", CODE));
    shadow_range(address, size, RANGE_UNMAPPED, CODE);
    if (is_region(address))
        free_regions(address, size);
    return true;
}

bool os_purge(void *address, size_t size)
{
    check_system_call(CODE);
    bool in_area = (char *)address >= areas && (char *)address < areas + CLOCKS * AREA_BYTES;
    if (!in_area)
        shadow_range(address, size, RANGE_PURGED, CODE);
    return !in_area;
}

/* There is never room behind a mapping, so that it has to move. Of a longer one the system would
 * unmap the end. */
enum os_move_result os_resize(void *address, size_t old_size, size_t new_size)
{
    (void)address;
    check_system_call(CODE);
    CHECK(new_size > old_size);
    return OS_MOVE_REFUSED;
}

void *os_relocate(void *address, size_t old_size, size_t new_size)
{
    check_system_call(CODE);
    char *target = map_regions(new_size, CODE);
    if (target)
        os_unmap(address, old_size);
    return target;
}

enum os_move_result os_move(void *address, size_t old_size, void *target, size_t new_size)
{
    (void)target, (void)new_size;
    os_unmap(address, old_size);
    return OS_MOVED;
}

/* Nothing refuses to unmap here, so nothing is ever left. */
void os_discard(void *address, size_t size)
{
    os_unmap(address, size);
}

void os_discard_leftovers(void)
{
}

/* Each execution begins the process anew, and gets the same again. */
void *os_reserve(size_t size)
{
    static void *reserved[RESERVATIONS];
    if (reservations == RESERVATIONS)
        return NULL;
    void **memory = &reserved[reservations++];
    if (!*memory)
        *memory = reserve(NULL, size);
    return *memory;
}

void *os_reserve_scattered(size_t size, const void *near)
{
    (void)near;
    return os_reserve(size);
}

bool os_make_writable(void *address, size_t size)
{
    (void)address, (void)size;
    check_system_call(CODE);
    search_step(mapping_op("protect", CODE));
    if (!failures_left)
        return true;
    failures_left--;
    return false;
}

/* Fences are no part of the model. */
bool os_guard(void *address, size_t size)
{
    (void)address, (void)size;
    return false;
}

bool os_unguard(void *address, size_t size)
{
    (void)address, (void)size;
    return false;
}

bool os_is_readable(const void *address, size_t size)
{
    (void)address, (void)size;
    return true;
}

bool os_make_inaccessible(void *address, size_t size)
{
    (void)address, (void)size;
    return false;
}

bool os_make_untouchable(void *address, size_t size)
{
    (void)address, (void)size;
    return false;
}

bool os_map_anew(void *address, size_t size)
{
    (void)address, (void)size;
    return false;
}

size_t os_mapping_limit(void)
{
    return 0;
}

void os_start(void)
{
}

bool os_is_watched(void)
{
    return false;
}

bool os_is_one_mapping(void *address, size_t size)
{
    (void)address, (void)size;
    check_system_call(CODE);
    return true;
}

void os_populate(void *address, size_t size)
{
    (void)address, (void)size;
    check_system_call(CODE);
}

bool os_gives_huge_pages(void)
{
    return false;
}

size_t os_resident_bytes(void *address, size_t size)
{
    (void)address;
    return size;
}

void os_advise_huge_pages(void *address, size_t size, bool wanted)
{
    (void)address, (void)size, (void)wanted;
    check_system_call(CODE);
}

size_t os_page_size(void)
{
    return 4096;
}

size_t os_address_space_limit(void)
{
    return SIZE_MAX;
}

size_t os_resident_peak(void)
{
    return SIZE_MAX;
}

void os_limits_read(const char *root, struct os_limits *limits)
{
    (void)root;
    *limits = (struct os_limits){SIZE_MAX, SIZE_MAX, SIZE_MAX};
}

struct os_footprint os_footprint_read(const char *root)
{
    (void)root;
    return (struct os_footprint){0, 0};
}

unsigned os_cpu_count(void)
{
    return 1;
}

uint64_t os_clock_ms(void)
{
    return threads[current].time_ms;
}

bool os_random(void *bytes, size_t size)
{
    memset(bytes, 0x5a, size);
    return true;
}

uint64_t os_clock_ns(void)
{
    return threads[current].time_ms * 1000000;
}

/* No processor keeps a store, or an old value, for so long: what was done before is known to all.
 */
void os_sleep_ms(unsigned ms)
{
    threads[current].time_ms += ms;
    search_step((struct op){OP_FORK, threads, "sleep", CODE});
    if (exploring)
        shadow_settle();
}

/* ---- Threads --------------------------------------------------------------------------------- */

/* The kernel compares with the newest value and goes to sleep in one step. */
void os_futex_wait(uint32_t *word, uint32_t expected)
{
    search_step((struct op){OP_WRITE, word, "wait", CODE});
    if (atomic_newest(word, sizeof *word) == expected)
        search_sleep(word, CODE);
}

void os_futex_wake(uint32_t *word)
{
    search_step((struct op){OP_WRITE, word, "wake", CODE});
    search_wake_one(word);
}

int model_thread(void)
{
    return current;
}

uint32_t os_thread_id(void)
{
    return threads[current].id;
}

/* Whoever learns from the kernel that a thread has ended comes after it. */
int os_process_id(void)
{
    return 1;
}

void os_thread_begin_process(void)
{
}

bool os_thread_exists(uint32_t id)
{
    for (int i = 0; i < CLOCKS; i++) {
        if (threads[i].id != id)
            continue;
        if (i == MAIN || !exploring || !search_has_ended(i))
            return true;
        shadow_join(i);
    }
    return false;
}

/* No signal handlers are modelled. */
uint64_t os_block_signals(void)
{
    return 0;
}

void os_restore_signals(uint64_t blocked)
{
    (void)blocked;
}

/* The new thread ends before its maker goes on, as it may; more threads than that are not made. */
int pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    (void)attributes;
    check_system_call(CODE);
    if (threads_refused)
        return EAGAIN;
    memset(thread, 0, sizeof *thread);
    body(argument);
    return 0;
}

int pthread_detach(pthread_t thread)
{
    (void)thread;
    return 0;
}

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
    *key = 0;
    key_destructor = destructor;
    return 0;
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
    (void)key;
    threads[current].key_value = (void *)value;
    return 0;
}

struct fork_handlers fork_handlers;

int pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    fork_handlers = (struct fork_handlers){before, in_parent, in_child};
    return 0;
}

int pthread_setcanceltype(int type, int *before)
{
    if (before)
        *before = type;
    return 0;
}

void model_exit_thread(void)
{
    void *value;
    for (int i = 0; i < PTHREAD_DESTRUCTOR_ITERATIONS && (value = threads[current].key_value);
         i++) {
        threads[current].key_value = NULL;
        key_destructor(value);
    }
}

/* ---- The end --------------------------------------------------------------------------------- */

void fatal(const char *message)
{
    model_fail("hakmem: %s", message);
}

void fatal_pointer(
    const char *call, enum defect defect, const void *pointer, const void *base, size_t size)
{
    (void)base, (void)size;
    search_abort();
    model_fail("hakmem: %s: defect %d of %p", call, (int)defect, pointer);
}

void fatal_maker(const char *call, const void *pointer, const char *maker)
{
    model_fail("hakmem: %s: %p is of %s", call, pointer, maker);
}

void fatal_told(const char *call, const char *what, size_t told, const void *pointer, size_t made)
{
    model_fail("hakmem: %s: %s of %p: %zu, not %zu", call, what, pointer, told, made);
}

void fatal_scope(
    const char *call, const char *what, const void *pointer, const char *in_what, const char *name)
{
    model_fail("hakmem: %s: %s %p%sscope '%s'", call, what, pointer, in_what, name);
}

void assert_failed(const char *expression, const char *file, int line)
{
    model_fail("%s:%d: %s", file, line, expression);
}

void *libc_alloc(size_t size, size_t alignment, bool zero)
{
    (void)size;
    (void)alignment;
    (void)zero;
    model_fail("the C library's malloc is not modelled");
}

void libc_free(void *block)
{
    libc_alloc((size_t)block, 0, false);
}

void *libc_realloc(void *block, size_t size)
{
    (void)block;
    return libc_alloc(size, 0, false);
}

size_t libc_usable_size(const void *block)
{
    return (size_t)libc_alloc((size_t)block, 0, false);
}
