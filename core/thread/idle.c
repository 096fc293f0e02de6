/* See idle.h. */
#include "thread/idle.h"

#include <string.h>

#include "base/policy.h"
#include "base/pressure.h"
#include "base/tuning.h"
#include "os/identity.h"
#include "os/os.h"
#include "os/syscall.h"
#include "scope/scope.h"
#include "slab/shard.h"
#include "thread/registry.h"

static struct heap *next_heap; /* for idle_step, in the thread that the engine works in */
static uint64_t vain_ms;       /* atomic relaxed, any thread: when idle_purge last waited in vain */

/* False for a heap of the parent process: until it is entered by its owner, if that forked, or
 * taken over (registry.c), no other thread touches it. */
static bool is_of_this_process(const struct heap *heap)
{
    return identity_is_local(ATOMIC_LOAD_RELAXED(&heap->owner));
}

/* The thread that held the gate of the caller's heap does not exist in this process. */
static void repair_gate(struct heap *heap)
{
    heap_find_sentinels(heap);
    heap->drained = DRAINED_SOME;
    ATOMIC_STORE_RELAXED(&heap->gate, GATE_FREE);
}

/* ---- The gate -------------------------------------------------------------------------------- */

void idle_enter(struct heap *heap)
{
    for (int rounds = 0;; rounds++) {
        uint32_t seen = ATOMIC_LOAD_RELAXED(&heap->gate);
        if (UNLIKELY(seen == GATE_OTHER && !is_of_this_process(heap))) {
            repair_gate(heap);
            continue;
        }
        if (LIKELY(seen != GATE_OTHER) &&
            (seen == GATE_OWNER ||
             __atomic_compare_exchange_n(
                 &heap->gate, &seen, GATE_OWNER, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
            return;
        if (rounds >= GATE_SPIN_ROUNDS)
            os_sleep_ms(1);
        cpu_relax();
    }
}

void idle_leave(struct heap *heap)
{
    ATOMIC_STORE_RELEASE(&heap->gate, GATE_FREE);
}

static bool try_gate(struct heap *heap)
{
    uint32_t seen = GATE_FREE;
    return ATOMIC_LOAD_RELAXED(&heap->gate) == GATE_FREE &&
           __atomic_compare_exchange_n(
               &heap->gate, &seen, GATE_OTHER, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* ---- The owner ------------------------------------------------------------------------------- */

/* Fills a table of classes by (size - 1) / step; `size_max` is the size of a class. Only the owner
 * reads it. */
static void fill_table(uint8_t *table, size_t step, size_t size_max, unsigned shard)
{
    size_t at = 0;
    for (unsigned size_class = 1; at < size_max / step; size_class++) {
        size_t end = size_classes[size_class].size / step;
        memset(table + at, (int)size_class_for_shard(size_class, shard), end - at);
        at = end;
    }
}

void idle_open_front(struct heap *heap)
{
    struct heap_front *front = &heap->area->front;
    STORE_HOT(&front->tiny_class[0], (uint8_t)size_class_for_shard(1, heap->shard));
    fill_table(front->tiny_class + 1, 1, TINY_MAX, heap->shard);
    fill_table(front->mid_class, MID_STEP, MID_MAX, heap->shard);
    fill_table(front->large_class, LARGE_STEP, LARGE_MAX, heap->shard);
    const struct class_map *map = class_map_newest();
    front->classes = map->classes;
    front->classes_base = map->base;
    STORE_HOT(&front->classes_limit, map->limit);
}

void idle_take_back(struct heap *heap)
{
    unsigned state = heap->state, drained = heap->drained;
    if (state == HEAP_CLOSED)
        idle_open_front(heap);
    if (drained) {
        heap_settle_magazines(heap);
        heap->owner_visits++;
    }
    if (state != HEAP_APART)
        ATOMIC_STORE_RELAXED(&heap->state, HEAP_OPEN);
    ATOMIC_STORE_RELAXED(&heap->drained, DRAINED_NOT);
    /* Heaps drained in a parent process do not count in its child. */
    if (UNLIKELY(drained == DRAINED_ALL) && is_of_this_process(heap))
        registry_count_idle(-1);
}

void idle_disown(struct heap *heap)
{
    idle_enter(heap);
    idle_take_back(heap);
    ATOMIC_STORE_RELAXED(&heap->state, HEAP_APART);
    idle_leave(heap);
}

/* ---- Parking --------------------------------------------------------------------------------- */

/* Threads park their heaps whenever they leave a slow path; atomic relaxed, any thread. */
static bool parked_for_good;

void idle_stay_parked(bool stay)
{
    ATOMIC_STORE_RELAXED(&parked_for_good, stay);
}

bool idle_matters(void)
{
    return pressure_is_armed() || ATOMIC_LOAD_RELAXED(&pressure_engine) || !heap_is_only_one();
}

bool idle_park(struct heap *heap)
{
    /* Since it entered the slow path, memory may have become free, or the clock moved. A helper is
     * told each time: no other call may come. */
    if ((!heap->parks_left || UNLIKELY(POLICY(background))) && idle_matters())
        idle_look_after_purge(heap);
    bool stays = ATOMIC_LOAD_RELAXED(&parked_for_good) || scope_is_entered();
    if (!stays && !(heap->parks_left && idle_matters()))
        return false;
    if (heap->parks_left && --heap->parks_left == 0)
        heap_draw_due(heap, true);
    ATOMIC_STORE_RELAXED(&heap->state, HEAP_PARKED);
    return true;
}

void idle_look_after_purge(struct heap *heap)
{
    uint64_t now_ms = os_clock_ms();
    if (heap->parked_ms != now_ms) {
        heap->parked_ms = now_ms;
        heap->parks_left = PARKS_MAX;
    }
    if (!os_is_watched())
        reclaim_tick(now_ms);
}

void idle_look_in_free(struct heap *heap)
{
    if (UNLIKELY(os_is_watched()) && heap->depth == 1)
        reclaim_tick(os_clock_ms());
}

/* ---- Others ---------------------------------------------------------------------------------- */

static void close_front(struct heap *heap)
{
    struct heap_front *front = &heap->area->front;
    ATOMIC_STORE_RELAXED(&heap->state, HEAP_CLOSED);
    KEEP_STORE_ORDER();
    ATOMIC_STORE_RELAXED(&front->classes_limit, 0);
    for (size_t size = 0; size <= TINY_MAX; size++)
        ATOMIC_STORE_RELAXED(&front->tiny_class[size], CLASS_NONE);
    for (size_t i = 0; i < ARRAY_LENGTH(front->mid_class); i++)
        ATOMIC_STORE_RELAXED(&front->mid_class[i], CLASS_NONE);
    for (size_t i = 0; i < ARRAY_LENGTH(front->large_class); i++)
        ATOMIC_STORE_RELAXED(&front->large_class[i], CLASS_NONE);
    heap->closed_ns = os_clock_ns();
}

/* Inside the gate. */
static bool may_drain(const struct heap *heap)
{
    bool settled =
        heap->state == HEAP_CLOSED && os_time_between(os_clock_ns(), heap->closed_ns) >= SETTLE_NS;
    return heap->drained != DRAINED_ALL && (heap->state == HEAP_PARKED || settled);
}

/* Takes blocks out of the first magazine, from `*size_class` on, that has any to take. Inside the
 * gate. */
static unsigned take_some(struct heap *heap, unsigned *size_class, void **blocks)
{
    for (; *size_class < CLASS_COUNT; ++*size_class) {
        unsigned count =
            magazine_take_bottom(heap, *size_class, blocks, FLUSH_MAX, heap->state == HEAP_CLOSED);
        if (count)
            return count;
    }
    ATOMIC_STORE_RELAXED(&heap->drained, DRAINED_ALL);
    return 0;
}

/* Drains until nothing is left, `most` blocks have gone, counted as in BATCH_COST, or the owner has
 * come, even if it has gone again: it may have filled empty magazines. Returns the blocks, counted
 * so. The gate is held while they are taken out, not while they are sent on. */
static size_t drain_heap(struct heap *heap, size_t most)
{
    void *blocks[FLUSH_MAX];
    size_t total = 0;
    uint16_t visits = 0;
    for (unsigned size_class = 1;
         size_class < CLASS_COUNT && total < most && is_of_this_process(heap) && try_gate(heap);) {
        /* At the first class no magazine has been passed yet, so the owner's visits do not matter.
         */
        visits = size_class == 1 ? heap->owner_visits : visits;
        bool drains = visits == heap->owner_visits && may_drain(heap);
        unsigned count = drains ? take_some(heap, &size_class, blocks) : 0;
        idle_leave(heap);
        if (!count) {
            if (drains)
                registry_count_idle(1);
            break;
        }
        magazine_send(heap->shard, size_class, blocks, count);
        total += size_max(count, BATCH_COST);
    }
    return total;
}

/* Closes the heap if its owner has it open. True: it is closed, and was not drained since. */
static bool close_heap(struct heap *heap)
{
    if (!is_of_this_process(heap) || !try_gate(heap))
        return false;
    if (heap->state == HEAP_OPEN)
        close_front(heap);
    bool waits = heap->state == HEAP_CLOSED && heap->drained != DRAINED_ALL;
    idle_leave(heap);
    return waits;
}

void idle_look(void)
{
    next_heap = heap_first();
}

bool idle_step(void)
{
    struct heap *heap = next_heap;
    size_t left = STEP_BLOCKS;
    for (int i = 0; heap && i < STEP_HEAPS && left; i++, heap = heap->next) {
        left -= size_min(left, drain_heap(heap, left));
        /* The next step goes on with it, unless its owner has come meanwhile. */
        if (!left && ATOMIC_LOAD_RELAXED(&heap->drained))
            break;
        close_heap(heap);
    }
    next_heap = heap;
    return heap != NULL;
}

void idle_purge(void)
{
    bool waits = false;
    for (struct heap *heap = heap_first(); heap; heap = heap->next)
        waits |= close_heap(heap);
    uint64_t now_ms = os_clock_ms(), settled_ns = os_clock_ns() + SETTLE_NS;
    waits &= os_time_between(now_ms, ATOMIC_LOAD_RELAXED(&vain_ms)) >= VAIN_MS;
    while (waits && os_clock_ns() < settled_ns)
        os_sleep_ms(1);
    size_t drained = 0;
    for (struct heap *heap = heap_first(); heap; heap = heap->next)
        drained += drain_heap(heap, SIZE_MAX);
    if (waits && !drained)
        ATOMIC_STORE_RELAXED(&vain_ms, now_ms);
}

/* ---- Fork ------------------------------------------------------------------------------------ */

void idle_reset(struct heap *heap)
{
    heap->drained = DRAINED_NOT; /* there are no blocks to keep */
    idle_take_back(heap);
    ATOMIC_STORE_RELAXED(&heap->state, HEAP_APART);
    ATOMIC_STORE_RELAXED(&heap->gate, GATE_FREE);
}
