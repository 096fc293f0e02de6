/* See pressure.h. */
#include "base/pressure.h"
#include "base/tuning.h"

/* See pressure_set_kept_bytes; atomic relaxed, any thread. */
#define KEPT_BY_POLICY (SIZE_MAX - 1)
static size_t kept_bytes = KEPT_BY_POLICY;

bool pressure_armed_flag;
uint8_t pressure_engine;
uint8_t pressure_helper;
bool pressure_limited_flag;
bool pressure_near_flag;
size_t pressure_used_bytes;

uint64_t pressure_given_back;

void pressure_arm(void)
{
    /* Every slow path reads the flag: writes only a change. */
    if (!pressure_is_armed())
        ATOMIC_STORE_RELAXED(&pressure_armed_flag, true);
}

void pressure_disarm(void)
{
    ATOMIC_STORE_RELAXED(&pressure_armed_flag, false);
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
