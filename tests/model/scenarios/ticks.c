/* Ticks of the purge: one thread begins a tick, and others may go on with its work. */
#include "../../unit/hand.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "checks/checks.h"
#include "engine/model.h"
#include "os/os.h"
#include "os/thread.h"
#include "reclaim/engine.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "span/page_heap.h"

/* ---- Pages ------------------------------------------------------------------------------------
 */

enum { FIRST_MS = 1000 };

/* More than a step purges: most of four superslabs. */
static void much_is_free(void)
{
    enum { UNITS = 30 };
    struct unit_run runs[4];
    CHECK(page_heap_init());
    shard_init(1);
    policy.purge_delay_ms = 1;
    for (unsigned i = 0; i < ARRAY_LENGTH(runs); i++)
        CHECK(page_heap_take(0, UNITS, 1, true, &runs[i]));
    for (unsigned i = 0; i < ARRAY_LENGTH(runs); i++)
        page_heap_put(runs[i].superslab, runs[i].run, UNITS * UNIT_PAGES);
    model_set_time(FIRST_MS);
    reclaim_tick(FIRST_MS);
}

static void come_by(void)
{
    model_set_time(FIRST_MS + 1);
    reclaim_tick(FIRST_MS + 1);
}

/* No work is forgotten. */
static void purged(void)
{
    for (unsigned i = 0; i < 4; i++)
        come_by();
    CHECK(page_heap_stats().dirty_free_pages * PAGE_SIZE <= pressure_bound(0));
    page_heap_check();
}

SCENARIO(ticks_pages) = {
    .name = "ticks_pages",
    .about = "two threads come by a round that is to purge pages, and one works",
    .prepare = much_is_free,
    .thread = {come_by, come_by},
    .finish = purged,
    .preemptions_max = 2};

/* ---- Sweeps -----------------------------------------------------------------------------------
 */

/* Two units of four blocks, with memory behind the last one, from a slab that used all of it. The
 * last block is in use, and the one before. */
enum { TAIL_SIZE = 28 * KIB, TAIL_BLOCKS = 4 };

static void *blocks[TAIL_BLOCKS];

static void two_before_a_tail(void)
{
    unsigned before = size_class_of(32 * KIB), class = size_class_of(TAIL_SIZE);
    CHECK(page_heap_init());
    shard_init(1);
    CHECK(bin_refill(0, before, blocks, TAIL_BLOCKS, 1, REFILL_MAP) == TAIL_BLOCKS);
    bin_flush(0, before, blocks, TAIL_BLOCKS);
    CHECK(bin_refill(0, class, blocks, TAIL_BLOCKS, 1, REFILL_MAP) == TAIL_BLOCKS);
    CHECK(blocks[0] > blocks[1] && blocks[1] > blocks[3]);
    bin_flush(0, class, blocks + 2, 2);
}

static void purge_bins(void)
{
    sweep_purge(SIZE_MAX);
}

static void free_last(void)
{
    bin_flush(0, size_class_of(TAIL_SIZE), blocks, 1);
}

static void free_before_last(void)
{
    bin_flush(0, size_class_of(TAIL_SIZE), blocks + 1, 1);
}

static void bins_agree(void)
{
    bin_check_all();
    page_heap_check();
}

SCENARIO(ticks_purge_tail) = {
    .name = "ticks_purge_tail",
    .about = "pages behind the last block are purged while the slab becomes empty",
    .prepare = two_before_a_tail,
    .thread = {purge_bins, free_last, free_before_last},
    .finish = bins_agree};

/* So much that a tick begins a sweep: most of three slabs of the longest blocks. */
static void much_is_free_in_slabs(void)
{
    enum { LONG_BLOCKS = 24 };
    void *blocks[LONG_BLOCKS];
    unsigned longest = size_class_of(MID_MAX);
    CHECK(page_heap_init());
    shard_init(1);
    for (unsigned got = 0; got < LONG_BLOCKS;)
        got += bin_refill(0, longest, blocks + got, LONG_BLOCKS - got, 1, REFILL_MAP);
    for (unsigned i = 0; i < LONG_BLOCKS; i++)
        if (i % 8 != 0)
            bin_flush(0, longest, blocks + i, 1);
}

static void tick(void)
{
    look_at_bins(true);
}

static void sweep(void)
{
    step_in_bins();
}

/* A sweep that a tick has begun is not forgotten. */
static void no_sweep_left(void)
{
    bin_check_all();
    page_heap_check();
    while (step_in_bins())
        continue;
    CHECK(!bin_of(0, size_class_of(MID_MAX))->sweeping);
}

SCENARIO(ticks_sweep) = {
    .name = "ticks_sweep",
    .about = "a tick begins a sweep that another thread goes on with",
    .prepare = much_is_free_in_slabs,
    .thread = {tick, sweep},
    .finish = no_sweep_left};

static void sweep_twice(void)
{
    sweep();
    sweep();
}

SCENARIO(ticks_sweep_again) = {
    .name = "ticks_sweep_again",
    .about = "two ticks, and a thread that sweeps twice",
    .prepare = much_is_free_in_slabs,
    .thread = {tick, sweep_twice, tick},
    .finish = no_sweep_left};

/* ---- The helper -------------------------------------------------------------------------------
 */

/* The thread that os_thread_start starts waits for that in the scenario, and ends when the program
 * has. */
enum { HELPER = 1, WANTED = 1, OVER = 2 };
static uint32_t asked; /* atomic: WANTED, OVER */
static bool offered;
static void (*body)(void);

bool os_thread_start(void (*run)(void), const void *const variables[2])
{
    (void)variables;
    /* The last one may not have ended quite. */
    while (offered && __atomic_load_n(&asked, __ATOMIC_ACQUIRE) & WANTED)
        model_yield();
    if (!offered)
        return false;
    body = run;
    __atomic_fetch_or(&asked, WANTED, __ATOMIC_RELEASE);
    os_futex_wake(&asked);
    return true;
}

bool os_thread_is_bare(void)
{
    return offered && model_thread() == HELPER;
}

static void be_helper(void)
{
    uint32_t now;
    while ((now = __atomic_load_n(&asked, __ATOMIC_ACQUIRE)) != OVER) {
        if (now & WANTED) {
            body();
            __atomic_fetch_and(&asked, ~(uint32_t)WANTED, __ATOMIC_RELEASE);
        } else {
            os_futex_wait(&asked, 0);
        }
    }
}

static struct unit_run held;

static void much_is_free_and_helped(void)
{
    CHECK(page_heap_init());
    shard_init(1);
    CHECK(page_heap_take(0, 30, 1, true, &held));
    much_is_free();
    policy.background = 1;
    offered = true;
}

/* The second call finds a helper, or none, or one that is about to end. */
static void free_and_sleep(void)
{
    come_by();
    page_heap_put(held.superslab, held.run, 30 * UNIT_PAGES);
    model_set_time(FIRST_MS + 2);
    reclaim_tick(FIRST_MS + 2);
    __atomic_fetch_or(&asked, OVER, __ATOMIC_RELEASE);
    os_futex_wake(&asked);
}

/* Nobody comes by any more, and all was given. */
static void given(void)
{
    page_heap_check();
    CHECK(ATOMIC_LOAD_RELAXED(&pressure_helper) == HELPER_NONE);
    CHECK(ATOMIC_LOAD_RELAXED(&pressure_engine) != ENGINE_WORKS);
    CHECK(page_heap_stats().dirty_free_pages * PAGE_SIZE <= pressure_bound(0));
}

SCENARIO(ticks_helper) = {
    .name = "ticks_helper",
    .about = "a thread frees, calls a helper, frees more, and sleeps",
    .prepare = much_is_free_and_helped,
    .thread = {free_and_sleep, be_helper},
    .finish = given,
    .preemptions_max = 2};
