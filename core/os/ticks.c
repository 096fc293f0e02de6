/* See ticks.h. */
#include "os/ticks.h"

#include "base/atomic.h"
#include "os/os.h"
#include "os/syscall.h"

/* Atomic: `start_ticks` release on store, acquire on load; 0 before the start. */
static uint64_t start_ns, start_ticks;

void ticks_start(void)
{
    if (ATOMIC_LOAD_RELAXED(&start_ticks))
        return;
    ATOMIC_STORE_RELAXED(&start_ns, os_clock_ns());
    ATOMIC_STORE_RELEASE(&start_ticks, cpu_ticks());
}

uint64_t ticks_ns(uint64_t ticks)
{
    uint64_t since_ticks = ATOMIC_LOAD_ACQUIRE(&start_ticks);
    uint64_t passed = os_clock_ns() - ATOMIC_LOAD_RELAXED(&start_ns);
    uint64_t passed_ticks = cpu_ticks() - since_ticks;
    if (!since_ticks || !passed_ticks)
        return 0;
    return (uint64_t)((double)ticks * ((double)passed / (double)passed_ticks));
}
