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
    return pressure_is_armed() || ATOMIC_LOAD_RELAXED(&pressure_engine) != ENGINE_RESTS;
}

static bool become(enum helper before, enum helper now)
{
    uint8_t seen = before;
    return __atomic_compare_exchange_n(
        &pressure_helper, &seen, now, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Works and rests in turns, from when a round is due until it is over. */
static void help_in_round(void)
{
    uint64_t wait_ms;
    while ((wait_ms = engine_wait_ms(os_clock_ms())) != 0)
        os_sleep_ms((unsigned)size_min(wait_ms, size_max(wait_ms / 2, HELPER_WAIT_MS)));
    do
        os_sleep_ms((unsigned)(engine_work(os_clock_ms(), WORK_SHORT_NS) / 1000000 + 1));
    while (pressure_waits());
}

/* A round that gave something is followed by another one, for what goes by halves and what became
 * free in it. What two rounds could not give may stay. */
static void help_in_rounds(void)
{
    unsigned vain = 0;
    while (has_work() && !os_is_watched()) {
        uint64_t given = pressure_total();
        help_in_round();
        if (pressure_total() != given) {
            vain = 0;
            pressure_arm();
        } else if (++vain > 1) {
            pressure_disarm();
        }
    }
}

static void help(void)
{
    heap_begin_bare_thread();
    do
        help_in_rounds();
    /* What comes now belongs to the next slow path, and what came just before, to nobody. */
    while (become(HELPER_WORKS, HELPER_NONE) && has_work() && !os_is_watched() &&
           become(HELPER_NONE, HELPER_WORKS));
}

bool background_works(void)
{
    const void *const variables[2] = {(void *)&thread_heap, &own_identity};
    uint8_t state = ATOMIC_LOAD_RELAXED(&pressure_helper);
    if (state != HELPER_NONE)
        return state == HELPER_WORKS;
    if (!has_work() || os_is_watched() || !become(HELPER_NONE, HELPER_WORKS))
        return false;
    if (os_thread_start(help, variables))
        return true;
    become(HELPER_WORKS, HELPER_REFUSED);
    return false;
}

void background_try_again(void)
{
    if (ATOMIC_LOAD_RELAXED(&pressure_helper) == HELPER_REFUSED)
        become(HELPER_REFUSED, HELPER_NONE);
}
