/* See hold.h. */
#include "hardened/hold.h"

#include <string.h>

#include "base/assert.h"
#include "base/pressure.h"
#include "hardened/front.h"
#include "os/fatal.h"
#include "os/os.h"
#include "slab/shard.h"
#include "thread/idle.h"
#include "thread/registry.h"

__thread struct hold *thread_hold;

/* A thread looks at the clock with every CALLS_PER_LOOK-th call, and after it has looked in a new
 * tick, with each of the next LOOKS_PER_TICK calls, so that a thread that makes few looks with all.
 */
enum { CALLS_PER_LOOK = 64, LOOKS_PER_TICK = 16 };

/* Ticks of the purge (thread/idle.h), in a call among many. */
static void look_at_clock(struct hold *hold)
{
    hold->calls_left = CALLS_PER_LOOK;
    if (!idle_matters())
        return;
    if (os_clock_ms() != hold->heap->parked_ms) {
        hold->looks_left = LOOKS_PER_TICK;
        heap_leave(heap_enter());
    }
    if (hold->looks_left) {
        hold->looks_left--;
        hold->calls_left = 1;
    }
}

/* ---- To and from the bins -------------------------------------------------------------------- */

static unsigned most_ready(unsigned size_class)
{
    unsigned size = size_classes[size_class].size;
    return size <= TINY_MAX ? HOLD_READY : HOLD_READY * (unsigned)TINY_MAX / size + 2;
}

/* Sets a class up at its first use. Memory of unused classes stays untouched, since many threads
 * use few. */
static void begin_class(struct ready *ready, unsigned size_class)
{
    if (LIKELY(ready->most))
        return;
    ready->most = most_ready(size_class);
    ready->batch = 1;
}

/* Fetches the bytes that malloc reads first: the block may have left the processor's caches long
 * ago, and the next one is not its neighbour. */
static void prefetch_ends(const char *block, size_t size)
{
    enum { TO_WRITE = 1, LINE = 64 };
    __builtin_prefetch(block, TO_WRITE);
    if (size > LINE)
        __builtin_prefetch(block + size - CANARY_SIZE, TO_WRITE);
}

static void send(struct hold *hold, unsigned size_class, unsigned count)
{
    struct ready *ready = &hold->ready[size_class];
    void *blocks[HOLD_READY];
    for (unsigned i = 0; i < count; i++) {
        word_check_zero(ready->blocks[i].slab, ready->blocks[i].block, "free");
        blocks[i] = ready->blocks[i].block;
    }
    ready->count -= count;
    COUNTER_ADD(&ready->fetched, -(uint64_t)count);
    memmove(ready->blocks, ready->blocks + count, ready->count * sizeof ready->blocks[0]);
    struct heap *heap = heap_enter();
    bin_flush(HARDENED_SHARD, size_class, blocks, count);
    if (heap) {
        idle_look_in_free(heap);
        heap_leave(heap);
    }
    /* Much may lie free now. */
    hold->calls_left = 1;
}

/* Gives the generator another state than those that fork has copied. */
static void draw_generator(struct hold *hold)
{
    identity_self(); /* now the process has a number */
    uint32_t process = identity_process_number();
    if (hold->process != process && !os_random(&hold->random, sizeof hold->random))
        hold->random = random_of_process ^ os_clock_ns() ^ (uintptr_t)hold << 20;
    hold->process = process;
}

/* A child of fork shall not choose what its parent and the parent's other children choose: of each
 * class that it uses, the ready blocks that it has from its parent go home. */
static void leave_parent(struct hold *hold, unsigned size_class)
{
    struct ready *ready = &hold->ready[size_class];
    draw_generator(hold);
    if (ready->process != (uint16_t)hold->process && ready->count)
        send(hold, size_class, ready->count);
    ready->process = (uint16_t)hold->process;
}

struct held hold_take_slowly(struct hold *hold, unsigned size_class)
{
    struct ready *ready = &hold->ready[size_class];
    if (!hold->calls_left)
        look_at_clock(hold);
    leave_parent(hold, size_class);
    if (!ready->count) {
        void *blocks[HOLD_READY];
        begin_class(ready, size_class);
        struct heap *heap = heap_enter();
        unsigned got = heap_take(heap, HARDENED_SHARD, size_class, blocks, ready->batch, 1);
        if (heap)
            heap_leave(heap);
        ready->batch = (uint16_t)size_min((size_t)2 * ready->batch, ready->most / 2);
        for (unsigned i = 0; i < got; i++) {
            prefetch_ends(blocks[i], size_classes[size_class].size);
            ready->blocks[i] = (struct held){blocks[i], slab_lookup(blocks[i])};
        }
        ready->count = got;
        COUNTER_ADD(&ready->fetched, got);
    }
    hold->calls_left++;
    return hold_take(hold, size_class);
}

void hold_spill(struct hold *hold, unsigned size_class)
{
    struct ready *ready = &hold->ready[size_class];
    begin_class(ready, size_class);
    if (ready->count >= ready->most)
        send(hold, size_class, ready->most / 2);
}

/* ---- The quarantine -------------------------------------------------------------------------- */

static size_t size_of(struct held held)
{
    return held.block ? size_classes[held.slab->size_class].size : 0;
}

/* Ends the waiting of the block in the place. */
static void release_place(struct hold *hold, struct hold_quarantine *quarantine, struct held *place)
{
    struct held held = *place;
    *place = (struct held){NULL, NULL};
    if (quarantine == &hold->mid)
        quarantine->bytes -= size_of(held);
    hold_ready(hold, held);
}

void hold_put_mid(struct hold *hold, struct held held)
{
    struct hold_quarantine *mid = &hold->mid;
    struct held oldest = hold_wait(hold, mid, held);
    mid->bytes += size_of(held) - size_of(oldest);
    hold_ready(hold, oldest);
    for (unsigned i = 0; i < HOLD_PLACES && UNLIKELY(mid->bytes > HOLD_BYTES); i++)
        release_place(hold, mid, &mid->queue[mid->next++ % HOLD_PLACES]);
    while (UNLIKELY(mid->bytes > HOLD_BYTES))
        release_place(hold, mid, &mid->random[random_below(&hold->random, HOLD_PLACES)]);
}

static void empty(struct hold *hold, struct hold_quarantine *quarantine)
{
    for (unsigned i = 0; i < HOLD_PLACES; i++) {
        release_place(hold, quarantine, &quarantine->random[i]);
        release_place(hold, quarantine, &quarantine->queue[i]);
    }
}

/* Sends all blocks home, and ends the hold's business; NULL: none. */
static void flush_and_end(struct hold *hold)
{
    if (!hold)
        return;
    empty(hold, &hold->tiny);
    empty(hold, &hold->mid);
    for (unsigned size_class = 1; size_class < HOLD_CLASSES; size_class++) {
        struct ready *ready = &hold->ready[size_class];
        if (ready->count)
            send(hold, size_class, ready->count);
        if (ready->most)
            ready->batch = 1;
    }
    hold_end(hold);
}

void hardened_flush(void)
{
    flush_and_end(hold_begin());
}

/* ---- Threads --------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct hold) <= HEAP_BYTES, "an area holds it");

static size_t hold_bytes(void)
{
    return round_up(sizeof(struct hold), os_page_size());
}

/* Empties the hold without looking at it. The counters, which others may read, count no block as
 * held from now on. Pages without memory stay so. */
static void forget(struct hold *hold)
{
    memset(&hold->tiny, 0, sizeof hold->tiny);
    memset(&hold->mid, 0, sizeof hold->mid);
    for (unsigned size_class = 0; size_class < HOLD_CLASSES; size_class++) {
        struct ready *ready = &hold->ready[size_class];
        uint64_t none_held = ready->takes - ready->frees;
        if (ready->count)
            ready->count = 0;
        if (ready->fetched != none_held)
            ATOMIC_STORE_RELAXED(&ready->fetched, none_held);
    }
    hold->busy = false;
}

void hold_open(struct heap *heap)
{
    if (thread_hold || heap != heap_of_thread() || heap->depth != 1)
        return;
    if (!heap->hold) {
        struct hold *made = registry_new_area();
        ATOMIC_STORE_RELEASE(&heap->hold, made);
    }
    struct hold *hold = heap->hold;
    if (!hold)
        return;
    hold->heap = heap;
    draw_generator(hold);
    if (hold->busy)
        forget(hold);
    hold->calls_left = CALLS_PER_LOOK;
    thread_hold = hold;
}

void hardened_leave_heap(void)
{
    struct hold *hold = hold_begin();
    thread_hold = NULL;
    flush_and_end(hold);
}

void hardened_make_bare(struct heap *heap)
{
    struct hold *hold = heap->hold;
    if (hold && !os_purge(hold, hold_bytes()))
        memset(hold, 0, sizeof *hold);
}

/* ---- Counters -------------------------------------------------------------------------------- */

/* Counts of calls that a hold served, as if it were a magazine that a call never hits. */
void hardened_add_counts(struct heap_counts *sum, const struct heap *heap, unsigned size_class)
{
    const struct hold *hold = ATOMIC_LOAD_ACQUIRE(&heap->hold);
    if (!hold || size_class >= HOLD_CLASSES)
        return;
    uint64_t takes = ATOMIC_LOAD_RELAXED(&hold->ready[size_class].takes);
    uint64_t frees = ATOMIC_LOAD_RELAXED(&hold->ready[size_class].frees);
    uint64_t fetched = ATOMIC_LOAD_RELAXED(&hold->ready[size_class].fetched);
    int64_t held = (int64_t)(fetched - takes + frees);
    if (held < 0)
        held = 0; /* the counters were read one after the other while the thread works */
    sum->cached += (uint64_t)held;
    sum->pops += takes;
    sum->magazines.misses += takes;
    sum->magazines.overflows += frees;
    sum->magazines.returned += frees - takes - (uint64_t)held;
}

void hardened_clear_counts(struct heap *heap, unsigned size_class)
{
    if (!heap->hold || size_class >= HOLD_CLASSES)
        return;
    struct ready *ready = &heap->hold->ready[size_class];
    ATOMIC_STORE_RELAXED(&ready->takes, 0);
    ATOMIC_STORE_RELAXED(&ready->frees, 0);
    ATOMIC_STORE_RELAXED(&ready->fetched, 0);
}

size_t hardened_heap_bytes(const struct heap *heap)
{
    return ATOMIC_LOAD_RELAXED(&heap->hold) ? hold_bytes() : 0;
}

/* ---- The walker ------------------------------------------------------------------------------ */

/* The block is not live, and not in its bin. Returns its size class; CLASS_NONE: an empty place. */
static unsigned check_held(struct held held, bool waits)
{
    if (!held.block)
        return CLASS_NONE;
    struct slab *slab = held.slab;
    unsigned index = slab_index(slab, held.block, "hold");
    enum word_state state = word_state(ATOMIC_LOAD_RELAXED(slab_word(slab, index)));
    ASSERT(slab == slab_lookup(held.block));
    ASSERT(!bitmap_test(slab->free, index));
    ASSERT(state == WORD_FREED || (state == WORD_UNUSED && !waits));
    (void)state; /* only asserted on */
    (void)waits;
    return slab->size_class;
}

/* All blocks of a quarantine are of one tier. */
static void check_quarantine(const struct hold_quarantine *quarantine, bool is_mid, unsigned *held)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < 2 * HOLD_PLACES; i++) {
        struct held place =
            i < HOLD_PLACES ? quarantine->random[i] : quarantine->queue[i - HOLD_PLACES];
        unsigned size_class = check_held(place, true);
        ASSERT(!size_class || (size_class > TINY_CLASS_LAST) == is_mid);
        bytes += size_of(place);
        held[size_class]++;
    }
    ASSERT(quarantine->bytes == (is_mid ? bytes : 0) && quarantine->bytes <= HOLD_BYTES);
    (void)bytes; /* only asserted on */
    (void)is_mid;
}

void hold_check(const struct heap *heap, unsigned *held)
{
    const struct hold *hold = heap->hold;
    unsigned here[HOLD_CLASSES] = {0};
    if (!hold || hold->busy)
        return;
    ASSERT(hold->heap == heap || heap->bare);
    check_quarantine(&hold->tiny, false, here);
    check_quarantine(&hold->mid, true, here);
    for (unsigned size_class = 1; size_class < HOLD_CLASSES; size_class++) {
        const struct ready *ready = &hold->ready[size_class];
        ASSERT(ready->count <= HOLD_READY && (!ready->count || ready->count < ready->most));
        for (unsigned i = 0; i < ready->count; i++) {
            unsigned found = check_held(ready->blocks[i], false);
            ASSERT(found == size_class);
            here[found]++;
        }
        ASSERT(ready->fetched - ready->takes + ready->frees == here[size_class]);
        held[size_class] += here[size_class];
    }
}
