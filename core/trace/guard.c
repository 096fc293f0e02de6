/* See guard.h. */
#include "trace/guard.h"

#include <string.h>

#include "map/page_map.h"
#include "os/fatal.h"
#include "os/os.h"

/* Pages of a slot; the first one is never part of a block. */
enum { SLOT_PAGES = 16 };

uintptr_t guard_start;
size_t guard_bytes;

static struct guard *slots; /* GUARD_SLOTS of them; const once there is a range */
static uint32_t turn;       /* atomic relaxed, any thread: counts up over the slots */

static size_t slot_bytes(void)
{
    return SLOT_PAGES * os_page_size();
}

bool guard_open(void)
{
    size_t bytes = (GUARD_SLOTS + 1) * slot_bytes();
    if (!slots)
        slots = os_map(round_up(GUARD_SLOTS * sizeof *slots, os_page_size()), os_page_size(), NULL);
    uintptr_t start = slots ? page_map_reserve(bytes) : 0;
    if (!start)
        return false;
    guard_bytes = bytes;
    ATOMIC_STORE_RELEASE(&guard_start, start);
    return true;
}

static char *slot_end(const struct guard *guard)
{
    return (char *)guard_start + (size_t)(guard - slots + 1) * slot_bytes();
}

static char *page_of(const char *block)
{
    return (char *)round_down((uintptr_t)block, os_page_size());
}

/* The next slot in turn without a live block, so that freed ones stay as long as possible. */
static struct guard *take_slot(void)
{
    for (unsigned tries = 0; tries < GUARD_SLOTS; tries++) {
        struct guard *guard = &slots[ATOMIC_ADD_RELAXED(&turn, 1) % GUARD_SLOTS];
        uint32_t state = ATOMIC_LOAD_RELAXED(&guard->state);
        if ((state == GUARD_FREE || state == GUARD_DEAD) &&
            __atomic_compare_exchange_n(
                &guard->state, &state, GUARD_TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return guard;
    }
    return NULL;
}

void *guard_take(
    struct sample *sample, const struct site *born, size_t size, size_t alignment, uint32_t thread)
{
    size_t page = os_page_size();
    if (!ATOMIC_LOAD_ACQUIRE(&guard_start) || alignment > page || size > slot_bytes() - 2 * page)
        return NULL;
    struct guard *guard = take_slot();
    if (!guard)
        return NULL;
    char *end = slot_end(guard);
    char *block = (char *)round_down((uintptr_t)end - size_max(size, 1), alignment);
    if (!os_make_writable(page_of(block), (size_t)(end - page_of(block)))) {
        ATOMIC_STORE_RELEASE(&guard->state, GUARD_FREE);
        return NULL;
    }
    guard->block = block;
    guard->size = size;
    guard->sample = sample;
    guard->born = born;
    guard->born_by = thread;
    guard->freed = NULL;
    guard->freed_by = 0;
    ATOMIC_STORE_RELEASE(&guard->state, GUARD_LIVE);
    return block;
}

struct guard *guard_of(const void *address)
{
    size_t offset = (uintptr_t)address - guard_start, index = offset / slot_bytes();
    /* An address in the first page of a slot lies behind the block of the slot before. */
    if (index && (index == GUARD_SLOTS || offset % slot_bytes() < os_page_size()))
        index--;
    return &slots[size_min(index, GUARD_SLOTS - 1)];
}

static _Noreturn SLOW_PATH void fatal_guard(
    const struct guard *guard, const void *block, const char *call)
{
    const char *end = slot_end(guard);
    uint32_t state = ATOMIC_LOAD_ACQUIRE(&guard->state);
    if ((uintptr_t)block % MIN_ALIGNMENT)
        fatal_pointer(call, DEFECT_MISALIGNED, block, NULL, 0);
    if (state == GUARD_DEAD && block == guard->block)
        fatal_pointer(call, DEFECT_DOUBLE_FREE, block, NULL, 0);
    if (state == GUARD_LIVE && (const char *)block > guard->block && (const char *)block < end)
        fatal_pointer(call, DEFECT_INTERIOR, block, guard->block, (size_t)(end - guard->block));
    fatal_pointer(call, DEFECT_FOREIGN, block, NULL, 0);
}

size_t guard_size(const struct guard *guard, const void *block, const char *call)
{
    if (UNLIKELY(ATOMIC_LOAD_ACQUIRE(&guard->state) != GUARD_LIVE || block != guard->block))
        fatal_guard(guard, block, call);
    return (size_t)(slot_end(guard) - guard->block);
}

struct sample *guard_put(
    struct guard *guard, const void *block, const struct site *freed, uint32_t thread)
{
    uint32_t live = GUARD_LIVE;
    if (UNLIKELY(
            block != guard->block ||
            !__atomic_compare_exchange_n(
                &guard->state, &live, GUARD_TAKEN, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)))
        fatal_guard(guard, block, "free");
    struct sample *sample = guard->sample;
    char *page = page_of(guard->block);
    size_t bytes = (size_t)(slot_end(guard) - page);
    guard->sample = NULL;
    guard->freed = freed;
    guard->freed_by = thread;
    /* If the system refuses, the next block finds these pages as they are: they must be zero. */
    if (!os_make_untouchable(page, bytes))
        memset(page, 0, bytes);
    ATOMIC_STORE_RELEASE(&guard->state, GUARD_DEAD);
    return sample;
}
