/* See schedule.h. */
#include "schedule.h"

#include "base/atomic.h"
#include "os/fault.h"

const char *const schedule_call_names[FAULT_KINDS] = {
    [OS_MMAP] = "mmap",       [OS_MUNMAP] = "munmap",     [OS_MREMAP] = "mremap",
    [OS_MADVISE] = "madvise", [OS_MPROTECT] = "mprotect",
};

static const struct schedule *current;
static uint64_t seen[FAULT_KINDS]; /* atomic relaxed, any thread */
static uint64_t failures;          /* atomic relaxed, any thread */

/* A number that depends on all bits of the other three (the finaliser of SplitMix64). */
static uint64_t mixed(uint64_t seed, uint64_t kind, uint64_t position)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + kind * 0xd1b54a32d192ed03u + position;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Each kind has a length of bursts and a share of bursts that fail, from none over one in 32 to
 * all of them. A burst fails as a whole. */
static bool fails_at_random(uint64_t seed, enum os_call call, uint64_t number)
{
    static const unsigned shares_of_32[] = {0, 1, 3, 8, 16, 28, 32};
    uint64_t character = mixed(seed, call, UINT64_MAX);
    unsigned share = shares_of_32[character % ARRAY_LENGTH(shares_of_32)];
    unsigned burst_length = 1u << (character >> 32) % 6;
    return mixed(seed, call, number / burst_length) % 32 < share;
}

static bool fails(enum os_call call)
{
    if (call >= FAULT_KINDS)
        return false;
    uint64_t number = 1 + __atomic_fetch_add(&seen[call], 1, __ATOMIC_RELAXED);
    bool fail = false;
    if (current->mode == SCHEDULE_RANDOM)
        fail = fails_at_random(current->number, call, number);
    else if (call == current->call)
        fail =
            current->mode == SCHEDULE_ONCE ? number == current->number : number >= current->number;
    if (fail)
        ATOMIC_ADD_RELAXED(&failures, 1);
    return fail;
}

void schedule_start(const struct schedule *schedule)
{
    current = schedule;
    if (schedule->mode != SCHEDULE_NONE)
        fault_hook = fails;
}

void schedule_stop(void)
{
    fault_hook = NULL;
}

uint64_t schedule_failures(void)
{
    return ATOMIC_LOAD_RELAXED(&failures);
}
