/* See pressure.h. */
#include "base/pressure.h"
#include "base/tuning.h"

/* See pressure_set_kept_bytes; atomic relaxed, any thread. */
#define KEPT_BY_POLICY (SIZE_MAX - 1)
static size_t kept_bytes = KEPT_BY_POLICY;

uint8_t pressure_armed;
uint8_t pressure_engine;
uint8_t pressure_helper;
bool pressure_limited_flag;
bool pressure_near_flag;
size_t pressure_used_bytes;

uint64_t pressure_given_back;

void pressure_arm(void)
{
    /* Every slow path reads the flag: writes only a change. */
    if (!pressure_is_armed_anew())
        ATOMIC_STORE_RELAXED(&pressure_armed, ARMED | ARMED_ANEW);
}

void pressure_arm_still(void)
{
    if (!pressure_is_armed())
        __atomic_fetch_or(&pressure_armed, ARMED, __ATOMIC_RELAXED);
}

/* Unless memory comes free meanwhile. */
static void change_armed(uint8_t before, unsigned now)
{
    __atomic_compare_exchange_n(
        &pressure_armed, &before, (uint8_t)now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void pressure_begin_round(void)
{
    uint8_t before = ATOMIC_LOAD_RELAXED(&pressure_armed);
    change_armed(before, before & ARMED_ANEW ? ARMED_BEFORE : 0);
}

void pressure_settle(void)
{
    change_armed(ARMED, 0);
}

void pressure_begin_process(void)
{
    if (ATOMIC_LOAD_RELAXED(&pressure_engine) == ENGINE_WORKS)
        ATOMIC_STORE_RELAXED(&pressure_engine, ENGINE_WAITS);
    ATOMIC_STORE_RELAXED(&pressure_helper, HELPER_NONE);
}

size_t pressure_bound(size_t share_bytes)
{
    size_t kept = ATOMIC_LOAD_RELAXED(&kept_bytes);
    return LIKELY(kept == KEPT_BY_POLICY) ? size_max(share_bytes, KEPT_MIN) : kept;
}

size_t pressure_keep(size_t used_bytes)
{
    return pressure_bound(used_bytes / 100 * (size_t)POLICY(retain_percent));
}

void pressure_set_kept_bytes(size_t bytes)
{
    ATOMIC_STORE_RELAXED(&kept_bytes, bytes == KEPT_BY_POLICY ? SIZE_MAX : bytes);
    pressure_arm();
}

size_t pressure_kept_bytes(void)
{
    size_t kept = ATOMIC_LOAD_RELAXED(&kept_bytes);
    return kept == KEPT_BY_POLICY ? 0 : kept;
}

void pressure_account(size_t bytes)
{
    ATOMIC_ADD_RELAXED(&pressure_given_back, bytes);
}

uint64_t pressure_total(void)
{
    return ATOMIC_LOAD_RELAXED(&pressure_given_back);
}
