/* See background.h. */
#include "reclaim/background.h"

#include "base/policy.h"
#include "base/pressure.h"
#include "base/tuning.h"
#include "os/os.h"
#include "reclaim/engine.h"
#include "thread/own.h"

static bool has_work(void)
{
    return pressure_is_armed() || ATOMIC_LOAD_RELAXED(&pressure_engine) != ENGINE_RESTS;
}

static bool become(uint8_t before, uint8_t now)
{
    return __atomic_compare_exchange_n(
        &pressure_helper, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Works and waits in turns, until a round gave nothing, or nobody else is left. Work that comes
 * when it has just ended is the next slow path's, which may never come: so it looks once more. */
static void *help(void *argument)
{
    uint64_t given = 0;
    do {
        while (!os_is_only_thread()) {
            if (!has_work()) {
                uint64_t total = pressure_total();
                if (total == given)
                    break;
                /* Once more: for what goes by halves, and what became free in the last round. */
                given = total;
                pressure_arm();
            }
            uint64_t rest_ns = engine_work(os_clock_ms(), WORK_SHORT_NS);
            os_sleep_ms((unsigned)size_min(rest_ns / 1000000 + 1, HELPER_WAIT_MS));
        }
        ATOMIC_STORE_RELAXED(&pressure_helper, HELPER_NONE);
    } while (has_work() && !os_is_only_thread() && become(HELPER_NONE, HELPER_WORKS));
    return argument;
}

bool background_works(void)
{
    uint8_t state = ATOMIC_LOAD_RELAXED(&pressure_helper);
    if (!POLICY(background) || state == HELPER_REFUSED || os_is_watched())
        return false;
    if (state == HELPER_NONE && has_work() && become(HELPER_NONE, HELPER_WORKS) &&
        (os_is_filtered() || own_thread_start(help, NULL) != 0)) {
        ATOMIC_STORE_RELAXED(&pressure_helper, HELPER_REFUSED);
        return false;
    }
    return ATOMIC_LOAD_RELAXED(&pressure_helper) == HELPER_WORKS;
}
