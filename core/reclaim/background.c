/* See background.h. */
#include "reclaim/background.h"

#include "base/policy.h"
#include "base/pressure.h"
#include "base/tuning.h"
#include "os/identity.h"
#include "os/os.h"
#include "os/thread.h"
#include "reclaim/engine.h"
#include "thread/heap.h"

static bool has_work(void)
{
    return (ATOMIC_LOAD_RELAXED(&pressure_armed) ||
            ATOMIC_LOAD_RELAXED(&pressure_engine) != ENGINE_RESTS) &&
           !os_is_watched();
}

static bool become(enum helper before, enum helper now)
{
    uint8_t seen = before;
    return __atomic_compare_exchange_n(
        &pressure_helper, &seen, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Works and rests in turns, from when a round is due until it is over. */
static void help_in_round(void)
{
    uint64_t wait_ms;
    while ((wait_ms = engine_wait_ms(os_clock_ms())) != 0)
        os_sleep_ms((unsigned)size_min(
            size_min(wait_ms, HELPER_WAIT_MOST_MS), size_max(wait_ms / 2, HELPER_WAIT_MS)));
    do
        os_sleep_ms((unsigned)(engine_work(os_clock_ms(), WORK_SHORT_NS) / 1000000 + 1));
    while (pressure_waits());
}

/* What came free, and what a round gave, is followed by two rounds more: memory has to be unneeded
 * from one to the next, and some goes by halves. */
static void help_in_rounds(void)
{
    while (has_work()) {
        uint64_t given = pressure_total();
        help_in_round();
        if (pressure_total() != given)
            pressure_arm();
        else
            pressure_settle();
    }
}

/* No call that found the helper at work may be the last one that knows of any: after a sleep the
 * helper sees what came before it was about to end, and who comes later keeps it. */
static bool goes_on(void)
{
    become(HELPER_WORKS, HELPER_ENDS);
    os_sleep_ms(1);
    bool more = has_work();
    return !become(HELPER_ENDS, more ? HELPER_WORKS : HELPER_NONE) || more;
}

static void help(void)
{
    heap_begin_bare_thread();
    do
        help_in_rounds();
    while (goes_on());
}

bool background_works(void)
{
    const void *const variables[2] = {(void *)&thread_heap, &own_identity};
    uint8_t state = ATOMIC_LOAD_RELAXED(&pressure_helper);
    if (state == HELPER_WORKS)
        return true;
    if (state == HELPER_REFUSED || !has_work() || !become(state, HELPER_WORKS))
        return false;
    if (state == HELPER_ENDS || os_thread_start(help, variables))
        return true;
    become(HELPER_WORKS, HELPER_REFUSED);
    return false;
}

void background_try_again(void)
{
    if (ATOMIC_LOAD_RELAXED(&pressure_helper) == HELPER_REFUSED)
        become(HELPER_REFUSED, HELPER_NONE);
}
