/* See lock_profile.h. */
#include "os/lock_profile.h"

#include "base/atomic.h"
#include "os/identity.h"
#include "os/os.h"
#include "os/syscall.h"
#include "os/ticks.h"

/* No critical section takes that long: the system took the processor from the holder. Counted
 * apart, for on a machine that has a processor for each thread it would not have happened. */
static const uint64_t interrupted_ns = 100000;

/* Constant after the constructor, but for locks that are taken before it: then 0, and no hold is
 * long. */
static uint64_t interrupted_ticks;

__attribute__((constructor)) static void start_clock(void)
{
    const uint64_t long_enough_ns = 50000;
    uint64_t now_ns, start_ns = os_clock_ns(), start_ticks = cpu_ticks();
    ticks_start();
    while ((now_ns = os_clock_ns()) < start_ns + long_enough_ns)
        cpu_relax();
    interrupted_ticks = (cpu_ticks() - start_ticks) * interrupted_ns / (now_ns - start_ns);
}

uint64_t lock_profile_ticks(void)
{
    return cpu_ticks();
}

void lock_profile_acquired(struct lock_profile *profile)
{
    uint32_t self = identity_thread(identity_self());
    COUNTER_ADD(&profile->acquisitions, 1);
    if (profile->holder != self) {
        COUNTER_ADD(&profile->handovers, profile->holder != 0);
        profile->holder = self;
    }
    profile->since_ticks = cpu_ticks();
}

void lock_profile_waited(struct lock_profile *profile, uint64_t since_ticks)
{
    COUNTER_ADD(&profile->waits, 1);
    COUNTER_ADD(&profile->waited_ticks, cpu_ticks() - since_ticks);
}

void lock_profile_releases(struct lock_profile *profile)
{
    uint64_t held = cpu_ticks() - profile->since_ticks;
    if (interrupted_ticks && held > interrupted_ticks)
        COUNTER_ADD(&profile->interrupted, 1);
    else
        COUNTER_ADD(&profile->held_ticks, held);
}
