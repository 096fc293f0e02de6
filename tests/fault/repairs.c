/* A thread forks in a signal handler in the middle of a call, between two locks, while others hold
 * each lock: its child repairs all structures and then goes on with the call (behaviours 31 and
 * 45). What the call has taken out of them, to work on it, must not be put back by the repair.
 *
 * Here the repair comes before system calls of the allocator, none of which is made under a lock
 * (ARCHITECTURE.md, invariant 3): before some alone, since each repair hides what the one before
 * has left wrong. No process is made, so that all blocks can be looked at.
 */
#include <stdio.h>

#include <hakmem/hakmem.h>

#include "checks/checks.h"
#include "checks/walk.h"
#include "hardened.h"
#include "map/metadata.h"
#include "os/fault.h"
#include "runtime_support.h"
#include "slab/shard.h"
#include "span/big_part.h"
#include "span/page_heap.h"
#include "thread/registry.h"

enum { SLOTS = 600, STEPS = 60000, PURGE_EVERY = 500 };

static unsigned repairs, one_of = 4;

/* The hook is asked in the initialisation as well, when there is nothing to repair. */
static bool repair_all(enum os_call call)
{
    static uint32_t seed = 3;
    (void)call;
    if (random_next(&seed) % one_of)
        return false;
    heap_repair_registry();
    for (unsigned part = 0; part < big_cache_parts(); part++)
        big_cache_repair(part);
    for (unsigned part = 0; part < page_heap_parts(); part++)
        page_heap_repair(part);
    metadata_repair();
    for (unsigned bin = 0; bin < shard_places(); bin++)
        if (bin_at(bin)->slab_count)
            bin_repair(bin);
    repairs++;
    return false;
}

static void check_all(void)
{
    walk_shared();
    bin_check_all();
    big_cache_check();
}

static size_t size_of_any_tier(uint32_t *seed)
{
    return random_next(seed) % 64 ? random_size(seed) : random_next(seed) % (24u << 20) + 1;
}

static void use(unsigned steps)
{
    static unsigned char *slots[SLOTS];
    static size_t sizes[SLOTS];
    uint32_t seed = 7;
    for (unsigned step = 1; step <= steps; step++) {
        unsigned at = random_next(&seed) % SLOTS;
        if (slots[at]) {
            REQUIRE(pattern_holds(slots[at], size_min(sizes[at] - 1, 4096), at));
            REQUIRE(slots[at][sizes[at] - 1] == (unsigned char)at);
        }
        free(slots[at]);
        slots[at] = NULL;
        /* The heap grows and shrinks as a whole, too. */
        if (step / 10000 % 2 == 0 || random_next(&seed) % 8 == 0) {
            sizes[at] = size_of_any_tier(&seed);
            REQUIRE(slots[at] = malloc(sizes[at]));
            pattern_fill(slots[at], size_min(sizes[at] - 1, 4096), at);
            slots[at][sizes[at] - 1] = (unsigned char)at;
        }
        if (step % PURGE_EVERY == 0) {
            hakmem_purge();
            check_all();
        }
    }
}

int main(void)
{
    watchdog(HANG_SECONDS, "calls with repairs in the middle");
    free(malloc(1));
    /* There are many more calls then, and regions lie far apart, so that a repair takes long. */
    if (HARDENED)
        one_of = 48;
    fault_hook = repair_all;
    use(STEPS);
    fault_hook = NULL;
    check_all();
    fprintf(stderr, "%u repairs\n", repairs);
    REQUIRE(repairs > 200);
    return 0;
}
