/* The slow paths of magazines: see magazine.h.
 *
 * A refill or flush moves a batch between the magazine and the transfer cache or the bins. A
 * magazine is just long enough for batches to cost little, since others cannot use its blocks: one
 * that needs a second batch before its maintenance grows; it outgrows one batch only if the
 * thread both takes and frees blocks of the class. An unused one gives half of its blocks back and
 * shrinks, and each one shrinks when the heap is flushed.
 */
#include <string.h>

#include "base/assert.h"
#include "base/poison.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "base/probe.h"
#include "base/tuning.h"
#include "slab/shard.h"
#include "slab/transfer.h"
#include "thread/heap.h"
#include "thread/idle.h"
#include "thread/registry.h"
#include "trace/trace.h"

static void **slots_of(const struct heap *heap)
{
    return (void **)heap->area;
}

/* NULL, a top in an area of zeros, counts as slot 0: the magazine was never used. */
ALWAYS_INLINE unsigned slot_of(const struct heap *heap, void *const *address)
{
    return address ? (unsigned)(address - (void *const *)heap->area) : 0;
}

ALWAYS_INLINE unsigned top_slot(const struct heap *heap, unsigned size_class)
{
    return slot_of(heap, ATOMIC_LOAD_RELAXED(&heap->area->front.top[size_class]));
}

static void set_top(struct heap *heap, unsigned size_class, unsigned slot)
{
    ATOMIC_STORE_RELAXED(&heap->area->front.top[size_class], slots_of(heap) + slot);
}

/* True if the magazine was used since the area was all zero. */
static bool was_used(const struct heap *heap, unsigned size_class)
{
    return top_slot(heap, size_class) != 0;
}

/* ---- Pops ------------------------------------------------------------------------------------ */

uint64_t heap_pops(const struct heap *heap, unsigned size_class)
{
    const uint64_t *at_due = &magazine_of(heap, size_class)->pops_at_due;
    uint64_t before, left;
    do {
        before = ATOMIC_LOAD_ACQUIRE(at_due);
        left = ATOMIC_LOAD_ACQUIRE(&heap->area->front.pops_left[size_class]);
        if (before & POPS_CHANGE)
            return before & ~POPS_CHANGE;
    } while (ATOMIC_LOAD_RELAXED(at_due) != before);
    return before - left;
}

/* How many pops until the next is due. If the heap stopped parking in this tick of the clock, as
 * many as since then. */
static uint64_t next_due(struct heap *heap, unsigned size_class, uint64_t pops)
{
    struct magazine *magazine = magazine_of(heap, size_class);
    uint64_t since = (uint32_t)pops - magazine->pops_parked, most = POPS_UNTIL_DUE;
    if (!heap->parks_left && idle_matters())
        most = size_min(since + 1, most);
    magazine->sample_round = 0;
    if (!trace_samples())
        return most;
    size_t size = size_classes[size_class].size;
    return trace_now()->next(&heap->random, size, most, &magazine->sample_round);
}

/* Sets when the next pop is due. */
static void draw_due(struct heap *heap, unsigned size_class)
{
    uint64_t *at_due = &magazine_of(heap, size_class)->pops_at_due;
    uint64_t pops = heap_pops(heap, size_class), left = next_due(heap, size_class, pops);
    /* Relaxed: a thread that reads this needs nothing else. */
    ATOMIC_STORE_RELAXED(at_due, pops | POPS_CHANGE);
    ATOMIC_STORE_RELEASE(&heap->area->front.pops_left[size_class], left);
    ATOMIC_STORE_RELEASE(at_due, pops + left);
}

void heap_pop_due(struct heap *heap, unsigned size_class)
{
    uint8_t round = magazine_of(heap, size_class)->sample_round;
    if (UNLIKELY(round) && round == ATOMIC_LOAD_RELAXED(&trace_round))
        heap->sample_class = (uint8_t)size_class;
    draw_due(heap, size_class);
}

void heap_draw_due(struct heap *heap, bool unparked)
{
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++)
        if (was_used(heap, size_class)) {
            if (unparked)
                magazine_of(heap, size_class)->pops_parked = (uint32_t)heap_pops(heap, size_class);
            draw_due(heap, size_class);
        }
}

/* After a pop in a slow path. A signal handler may have popped past the due one, and a magazine
 * that was never used has none yet. */
static void look_if_due(struct heap *heap, unsigned size_class)
{
    if (UNLIKELY((int64_t)heap->area->front.pops_left[size_class] <= 0))
        heap_pop_due(heap, size_class);
}

static void count_pop(struct heap *heap, unsigned size_class)
{
    COUNTER_ADD(&heap->area->front.pops_left[size_class], -(uint64_t)1);
    look_if_due(heap, size_class);
}

void *heap_pop(struct heap *heap, unsigned size_class)
{
    bool due = false;
    void *block = magazine_pop(&heap->area->front, size_class, &due);
    if (block)
        look_if_due(heap, size_class);
    return block;
}

/* ---- Slot ranges ----------------------------------------------------------------------------- */

static unsigned range_blocks(unsigned kind)
{
    return ((RANGE_BLOCKS_MIN + 1) << kind) - 1;
}

/* With the two NULL slots. */
static unsigned range_slots(unsigned kind)
{
    return range_blocks(kind) + 2;
}

/* First slot of a range for the class; 0: the area is used up. */
static unsigned range_alloc(struct heap *heap, unsigned size_class, unsigned kind)
{
    if (kind == 0)
        return slot_of(heap, magazine_of(heap, size_class)->shortest_range);
    unsigned first = heap->free_range[kind];
    if (first) {
        heap->free_range[kind] = (uint16_t)(uintptr_t)slots_of(heap)[first];
        return first;
    }
    first = heap->next_slot;
    if (first + range_slots(kind) > HEAP_SLOTS)
        return 0;
    heap->next_slot = (uint16_t)(first + range_slots(kind));
    return first;
}

static void range_free(struct heap *heap, unsigned first, unsigned kind)
{
    if (kind == 0)
        return;
    slots_of(heap)[first] = (void *)(uintptr_t)heap->free_range[kind];
    heap->free_range[kind] = (uint16_t)first;
}

/* ---- Capacity -------------------------------------------------------------------------------- */

/* Whether the class is one of those that the allowance bounds together. */
ALWAYS_INLINE bool is_allowed(unsigned size_class)
{
    return size_class > TINY_CLASS_LAST && size_class <= SIZE_COUNT;
}

/* How many bytes of all blocks above 1 KiB together the thread may cache: its share of a part of
 * the memory in use. What is cached counts as used, too, so this cannot grow by itself. Where
 * blocks only come or only go, little is enough. */
static size_t allowance(bool two_way)
{
    size_t least = (size_t)POLICY(magazine_kib) * KIB * CACHED_MAGAZINES / heap_crowd();
    size_t part = two_way ? pressure_used() / 100 * CACHED_PERCENT / heap_working() : 0;
    return size_max(part, least);
}

/* Most tiny blocks of the class that a magazine may hold. */
static unsigned tiny_limit(unsigned size_class)
{
    unsigned crowd = heap_crowd();
    crowd = crowd > CROWD_POOL ? crowd - CROWD_POOL + 1 : 1;
    uint32_t bytes = (uint32_t)POLICY(magazine_kib) * (uint32_t)KIB;
    if (crowd < CROWD_MANY)
        bytes *= TINY_FACTOR;
    /* Each batch computes this: few divisions, of 32 bits. */
    uint32_t share = crowd > 1 ? bytes / crowd : bytes;
    size_t blocks = size_class_index(size_class, share);
    return (unsigned)size_min(size_max(blocks, CACHED_BLOCKS_MIN), range_blocks(RANGE_KINDS - 1));
}

/* Most blocks of the class that a magazine may hold; 0: none, since the thread caches enough of
 * others, or since near a limit long blocks are not cached. */
static unsigned capacity_limit(const struct heap *heap, unsigned size_class)
{
    if (!is_allowed(size_class))
        return tiny_limit(size_class);
    if (size_class_is_long(size_class) && pressure_is_near())
        return 0;
    const struct magazine *magazine = magazine_of(heap, size_class);
    size_t size = size_classes[size_class].size, most = allowance(magazine->two_way);
    size_t own = magazine->capacity * size;
    size_t others = heap->allowed_bytes - size_min(heap->allowed_bytes, own);
    size_t left = most - size_min(most, others);
    return left >= CACHED_BLOCKS_MAX * size ? CACHED_BLOCKS_MAX : (uint32_t)left / (uint32_t)size;
}

/* Fills the unused slots above the top: no block has this address. */
#define UNUSED_SLOT ((void *)1)

/* Makes a range with `held` blocks the magazine of the class, which may hold `limit`, or what it
 * holds. */
static void magazine_place(
    struct heap *heap, unsigned size_class, unsigned begin, unsigned kind, unsigned held,
    unsigned limit)
{
    struct magazine *magazine = magazine_of(heap, size_class);
    void **slots = slots_of(heap) + begin;
    unsigned capacity = (unsigned)size_max(size_min(range_blocks(kind), limit), held);
    if (is_allowed(size_class))
        heap->allowed_bytes +=
            ((size_t)capacity - magazine->capacity) * size_classes[size_class].size;
    slots[0] = slots[capacity + 1] = NULL;
    for (unsigned i = held + 1; i <= capacity; i++)
        slots[i] = UNUSED_SLOT;
    magazine->kind = (uint8_t)kind;
    magazine->capacity = (uint16_t)capacity;
    magazine->range = (uint16_t)begin;
    ATOMIC_STORE_RELAXED(&magazine->begin, (uint16_t)begin);
    set_top(heap, size_class, begin + held);
}

/* Moves the magazine, with its blocks, to a range of another size. False: there is no room for one,
 * and nothing has changed. */
static bool magazine_move(struct heap *heap, unsigned size_class, unsigned kind, unsigned limit)
{
    struct magazine *magazine = magazine_of(heap, size_class);
    unsigned begin = range_alloc(heap, size_class, kind);
    if (!begin)
        return false;
    void **slots = slots_of(heap);
    unsigned held = heap_cached_blocks(heap, size_class);
    ASSERT(held <= range_blocks(kind));
    memcpy(&slots[begin + 1], &slots[magazine->begin + 1], held * sizeof(void *));
    range_free(heap, magazine->range, magazine->kind);
    magazine_place(heap, size_class, begin, kind, held, limit);
    return true;
}

/* Sets the magazine's capacity to `limit`, or less if its range is shorter, or more if it holds
 * more. A magazine without a range gets the shortest one. */
static void magazine_set_capacity(struct heap *heap, unsigned size_class, unsigned limit)
{
    struct magazine *magazine = magazine_of(heap, size_class);
    limit = (unsigned)size_min(range_blocks(magazine->kind), limit);
    if (LIKELY(magazine->capacity == limit) && was_used(heap, size_class))
        return;
    unsigned held = heap_cached_blocks(heap, size_class);
    if (!was_used(heap, size_class)) {
        magazine_place(heap, size_class, range_alloc(heap, size_class, 0), 0, 0, limit);
        draw_due(heap, size_class);
    } else if (magazine->capacity != size_max(limit, held)) {
        magazine_place(heap, size_class, magazine->range, magazine->kind, held, limit);
    }
}

static unsigned batch_max(unsigned capacity)
{
    return (unsigned)size_max(BATCH_MAX, (capacity + 1) / BATCH_PART);
}

static unsigned kind_limit(const struct magazine *magazine)
{
    return magazine->two_way ? RANGE_KINDS - 1 : ONE_WAY_KIND_MAX;
}

static void flush_top(struct heap *heap, unsigned size_class, unsigned count);

/* Returns blocks until the magazine holds no more than `limit`, its new capacity. */
static void shorten(struct heap *heap, unsigned size_class, unsigned limit)
{
    unsigned held = heap_cached_blocks(heap, size_class),
             kind = magazine_of(heap, size_class)->kind;
    flush_top(heap, size_class, held - (unsigned)size_min(held, limit));
    if (kind == 0 || limit > range_blocks(kind - 1) ||
        !magazine_move(heap, size_class, kind - 1, limit))
        magazine_set_capacity(heap, size_class, limit);
}

/* A magazine that needs a second batch between two maintenances is too small: doubles it, up to
 * `limit` blocks. Where magazines share an allowance, makes it half as long again, since what it
 * may hold and does not is room that others lack. */
static void magazine_adapt(struct heap *heap, unsigned size_class, unsigned limit)
{
    struct magazine *magazine = magazine_of(heap, size_class);
    unsigned first = size_class_is_long(size_class) ? 1 : RANGE_BLOCKS_MIN;
    unsigned wanted = (unsigned)size_max(magazine->capacity, first);
    magazine->batches += magazine->batches < UINT16_MAX;
    if (magazine->batches >= 2 && wanted < range_blocks(kind_limit(magazine))) {
        wanted += (is_allowed(size_class) ? wanted / 2 : wanted) + 1;
        heap->wants_room |= wanted > limit && is_allowed(size_class);
    }
    wanted = (unsigned)size_min(wanted, limit);
    if (wanted <= range_blocks(magazine->kind) ||
        !magazine_move(heap, size_class, magazine->kind + 1u, wanted))
        magazine_set_capacity(heap, size_class, wanted);
}

unsigned heap_cached_blocks(const struct heap *heap, unsigned size_class)
{
    /* Another thread's magazine may be moving to another range: then looks again. */
    for (int i = 0; i < 1000 && was_used(heap, size_class); i++) {
        unsigned begin = ATOMIC_LOAD_RELAXED(&magazine_of(heap, size_class)->begin);
        unsigned top = top_slot(heap, size_class);
        if (top - begin <= range_blocks(RANGE_KINDS - 1))
            return top - begin;
    }
    return 0;
}

/* ---- Refill and flush ------------------------------------------------------------------------ */

/* Takes blocks that were handed out before; unless `others`, of this shard alone. */
static unsigned take_used(
    unsigned shard, unsigned size_class, void **blocks, unsigned count, unsigned alignment,
    bool others)
{
    unsigned got = bin_refill(shard, size_class, blocks, count, alignment, REFILL_USED);
    return got || !others ? got : transfer_take_from_others(shard, size_class, blocks, count);
}

unsigned heap_take(
    struct heap *heap, unsigned shard, unsigned size_class, void **blocks, unsigned count,
    unsigned alignment)
{
    unsigned got = take_used(shard, size_class, blocks, count, alignment, alignment <= 1);
    if (!got)
        got = bin_refill(shard, size_class, blocks, count, alignment, REFILL_FRESH);
    for (unsigned step = 0; !got && step < ROOM_STEPS; step++)
        if (reclaim_make_room(heap, step))
            got = bin_refill(shard, size_class, blocks, count, alignment, REFILL_FRESH);
    if (!got)
        got = bin_refill(shard, size_class, blocks, count, alignment, REFILL_MAP);
    return got;
}

/* Blocks that others freed mostly lie in the cache of another processor. The last ones are popped
 * first. */
static void prefetch_batch(void *const *blocks, unsigned count)
{
    for (unsigned i = 0; i < count && i < PREFETCH_MAX; i++)
        __builtin_prefetch(blocks[count - 1 - i], 1);
}

/* Takes blocks from the cheapest source that has any. */
static unsigned refill(
    struct heap *heap, unsigned size_class, void **slots, unsigned count, bool allow_fresh)
{
    unsigned got = allow_fresh ? heap_take(heap, heap->shard, size_class, slots, count, 1)
                               : take_used(
                                     heap->shard, size_class, slots, count, 1,
                                     !magazine_of(heap, size_class)->two_way);
    prefetch_batch(slots, got);
    return got;
}

/* A block for a thread that may cache none of the class. */
static void *take_uncached(struct heap *heap, unsigned size_class, bool allow_fresh)
{
    struct magazine *magazine = magazine_of(heap, size_class);
    void *block;
    if (!refill(heap, size_class, &block, 1, allow_fresh))
        return NULL;
    COUNTER_ADD(&magazine->counts.refills, 1);
    COUNTER_ADD(&magazine->counts.returned, -(uint64_t)1);
    count_pop(heap, size_class);
    return block;
}

/* Fills the magazine with a batch. False: there are no blocks. */
static bool fill_magazine(struct heap *heap, unsigned size_class, unsigned limit, bool allow_fresh)
{
    struct magazine *magazine = magazine_of(heap, size_class);
    bool just_one = allow_fresh && size_class_is_long(size_class);
    magazine->two_way |= magazine->flushed_last;
    if (!just_one)
        magazine_adapt(heap, size_class, limit);
    else if (!magazine->capacity)
        magazine_set_capacity(heap, size_class, 1);
    unsigned capacity = magazine->capacity;
    unsigned count = magazine->flushed_last ? (capacity + 1) / 2 : capacity;
    count = just_one ? 1 : (unsigned)size_min(count, batch_max(capacity));
    /* Where CPUs have many threads, most of them use few blocks of a class: the first batch is one
     * block, and each next one twice as long. */
    if (heap_crowd() >= CROWD_POOL)
        count = (unsigned)size_min(count, 1u << size_min(magazine->counts.refills, RANGE_KINDS));
    void **slots = slots_of(heap) + magazine->begin + 1;
    unsigned got = refill(heap, size_class, slots, count, allow_fresh);
    if (!got)
        return false;
    PROBE_2(refill, size_classes[size_class].size, got);
    poison_blocks(slots, got, size_classes[size_class].size);
    set_top(heap, size_class, magazine->begin + got);
    magazine->flushed_last = false;
    COUNTER_ADD(&magazine->counts.refills, 1);
    COUNTER_ADD(&magazine->counts.returned, -(uint64_t)got);
    return true;
}

void *heap_refill(struct heap *heap, unsigned size_class, bool allow_fresh)
{
    unsigned limit = capacity_limit(heap, size_class);
    if (limit == 0) {
        magazine_set_capacity(heap, size_class, 0);
        /* The heap's other long blocks go, too: others need the memory. */
        if (pressure_is_near())
            heap_flush_singles(heap);
        return take_uncached(heap, size_class, allow_fresh);
    }
    void *block = NULL;
    /* A signal handler may take all of them first. */
    while (!block && fill_magazine(heap, size_class, limit, allow_fresh))
        block = heap_pop(heap, size_class);
    return block;
}

/* Brings an aligned block of the magazine to its top. */
static bool find_aligned(struct heap *heap, unsigned size_class, size_t alignment)
{
    void **top = heap->area->front.top[size_class],
         **slots = slots_of(heap) + magazine_of(heap, size_class)->begin + 1;
    for (void **slot = top; slot >= slots; slot--) {
        void *block = *slot;
        if ((uintptr_t)block & (alignment - 1))
            continue;
        *slot = *top;
        *top = block;
        return true;
    }
    return false;
}

void *heap_take_aligned(struct heap *heap, unsigned size_class, size_t alignment)
{
    void *block = NULL;
    if (find_aligned(heap, size_class, alignment)) {
        COUNTER_ADD(&magazine_of(heap, size_class)->counts.misses, 1);
        return heap_pop(heap, size_class);
    }
    if (heap_take(heap, heap->shard, size_class, &block, 1, (unsigned)(alignment >> UNIT_SHIFT)))
        heap_count_take(heap, size_class);
    return block;
}

bool heap_resize(struct heap *heap, struct slab *slab, unsigned size_class)
{
    unsigned before = slab->size_class;
    if (!bin_resize(slab, size_class))
        return false;
    heap_count_free(heap, before);
    heap_count_take(heap, size_class);
    /* A resized block stays sampled or not. */
    heap->sample_class = CLASS_NONE;
    return true;
}

void magazine_send(unsigned shard, unsigned size_class, void **blocks, unsigned count)
{
    unsigned kept = transfer_put(shard, size_class, blocks, count);
    for (unsigned batch; kept < count; kept += batch) {
        batch = (unsigned)size_min(count - kept, FLUSH_MAX);
        bin_flush(shard, size_class, blocks + kept, batch);
    }
}

static void count_flush(struct magazine *magazine, unsigned count)
{
    COUNTER_ADD(&magazine->counts.flushes, 1);
    COUNTER_ADD(&magazine->counts.returned, count);
}

/* Returns `count` blocks from the top, so that the others need not move. */
static void flush_top(struct heap *heap, unsigned size_class, unsigned count)
{
    struct magazine *magazine = magazine_of(heap, size_class);
    if (!count)
        return;
    unsigned first = top_slot(heap, size_class) + 1 - count;
    magazine_send(heap->shard, size_class, slots_of(heap) + first, count);
    set_top(heap, size_class, first - 1);
    count_flush(magazine, count);
}

unsigned magazine_take_bottom(
    struct heap *heap, unsigned size_class, void **blocks, unsigned most, unsigned keep)
{
    /* Acquire pairs with the release of STORE_HOT, for the blocks that the owner put in. */
    unsigned top = slot_of(heap, ATOMIC_LOAD_ACQUIRE(&heap->area->front.top[size_class]));
    if (!top)
        return 0;
    struct magazine *magazine = magazine_of(heap, size_class);
    unsigned begin = magazine->begin, held = top - begin;
    unsigned count = held > keep ? (unsigned)size_min(held - keep, most) : 0;
    if (!count)
        return 0;
    memcpy(blocks, &slots_of(heap)[begin + 1], count * sizeof *blocks);
    ATOMIC_STORE_RELAXED(&slots_of(heap)[begin + count], NULL);
    KEEP_STORE_ORDER();
    ATOMIC_STORE_RELAXED(&magazine->begin, (uint16_t)(begin + count));
    count_flush(magazine, count);
    ATOMIC_STORE_RELAXED(&heap->drained, DRAINED_SOME);
    return count;
}

void heap_settle_magazines(struct heap *heap)
{
    void **slots = slots_of(heap);
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
        struct magazine *magazine = magazine_of(heap, size_class);
        if (!was_used(heap, size_class) || magazine->begin == magazine->range)
            continue;
        unsigned held = heap_cached_blocks(heap, size_class);
        memmove(&slots[magazine->range + 1], &slots[magazine->begin + 1], held * sizeof(void *));
        magazine_place(heap, size_class, magazine->range, magazine->kind, held, magazine->capacity);
    }
}

void heap_find_sentinels(struct heap *heap)
{
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
        unsigned slot = top_slot(heap, size_class);
        if (!slot)
            continue;
        while (slots_of(heap)[slot])
            slot--;
        magazine_of(heap, size_class)->begin = (uint16_t)slot;
    }
}

/* Makes room in the full magazine, by a longer range or by returning blocks. If it may hold none,
 * it stays full. */
static void make_room(struct heap *heap, unsigned size_class)
{
    struct magazine *magazine = magazine_of(heap, size_class);
    unsigned limit = capacity_limit(heap, size_class);
    magazine->debt -= magazine->debt > 0;
    magazine_adapt(heap, size_class, limit);
    unsigned capacity = magazine->capacity, held = heap_cached_blocks(heap, size_class);
    if (held < capacity)
        return;
    unsigned keep = magazine->flushed_last ? capacity / FLUSHED_PART : capacity / 2;
    keep = (unsigned)size_min(keep, limit);
    flush_top(heap, size_class, (unsigned)size_min(held - keep, batch_max(capacity)));
    magazine->flushed_last = true;
    if (capacity > limit)
        magazine_set_capacity(heap, size_class, limit);
}

void heap_put(struct heap *heap, unsigned size_class, void **block)
{
    struct heap_front *front = &heap->area->front;
    magazine_mark(front, size_class, block);
    if (magazine_is_full(front, size_class))
        make_room(heap, size_class);
    if (LIKELY(!magazine_is_full(front, size_class))) {
        magazine_put(front, size_class, block, false);
        return;
    }
    poison_block(block, size_classes[size_class].size);
    magazine_send(heap->shard, size_class, (void **)&block, 1);
    count_flush(magazine_of(heap, size_class), 1);
}

bool heap_flush(struct heap *heap, size_t most)
{
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
        struct magazine *magazine = magazine_of(heap, size_class);
        if (!was_used(heap, size_class))
            continue;
        unsigned held = heap_cached_blocks(heap, size_class);
        unsigned count = (unsigned)size_min(held, most);
        flush_top(heap, size_class, count);
        if (count < held)
            return false;
        most -= size_min(most, size_max(count, held ? BATCH_COST : 0));
        magazine->batches = 0;
        /* The next owner of the heap, or the next phase of the program, may need less. */
        shorten(heap, size_class, magazine->capacity / 2u);
    }
    return true;
}

void heap_put_back(struct heap *heap, unsigned size_class, void **block)
{
    heap_put(heap, size_class, block);
    COUNTER_ADD(&magazine_of(heap, size_class)->counts.returned, -(uint64_t)1);
}

void heap_count_take(struct heap *heap, unsigned size_class)
{
    struct magazine_counts *counts = &magazine_of(heap, size_class)->counts;
    COUNTER_ADD(&counts->misses, 1);
    COUNTER_ADD(&counts->returned, -(uint64_t)1);
    count_pop(heap, size_class);
}

void heap_count_free(struct heap *heap, unsigned size_class)
{
    struct magazine_counts *counts = &magazine_of(heap, size_class)->counts;
    COUNTER_ADD(&counts->overflows, 1);
    COUNTER_ADD(&counts->returned, 1);
}

bool heap_flush_singles(struct heap *heap)
{
    bool any = false, near = pressure_is_near();
    if (heap->depth != 1)
        return false;
    unsigned size_class = near ? LONG_CLASS_FIRST : SINGLE_CLASS_FIRST;
    for (; size_class <= SIZE_COUNT; size_class++) {
        unsigned begin = magazine_of(heap, size_class)->begin;
        unsigned held = heap_cached_blocks(heap, size_class);
        if (held) {
            bin_flush(heap->shard, size_class, slots_of(heap) + begin + 1, held);
            set_top(heap, size_class, begin);
            count_flush(magazine_of(heap, size_class), held);
            any = true;
        }
        /* One that is empty may be about to be filled. */
        if (held && near)
            magazine_set_capacity(heap, size_class, 0);
    }
    return any;
}

bool heap_caches(struct heap *heap, unsigned size_class, const void *block)
{
    void **slots = slots_of(heap) + magazine_of(heap, size_class)->begin + 1;
    for (unsigned i = 0, held = heap_cached_blocks(heap, size_class); i < held; i++)
        if (slots[i] == block)
            return true;
    return false;
}

_Static_assert(
    sizeof(struct heap_front) >= 16 * sizeof(void *), "in the area even below the first range");

/* Outside the gate others may move the sentinel. A slot below it holds no block of the magazine: a
 * match there costs a search in vain. */
ALWAYS_INLINE bool is_in_slots(void *const *top, const void *block)
{
    return LOAD_HOT(top) == block || LOAD_HOT(top - 1) == block || LOAD_HOT(top - 2) == block ||
           LOAD_HOT(top - 3) == block;
}

bool heap_suspects(struct heap *heap, unsigned size_class, const void *block, bool may_search)
{
    void *const *top = heap->area->front.top[size_class];
    /* Most double frees follow the first soon. No loop, and not up to the sentinel: unwritten
     * blocks come here often. */
    if (top != slots_of(heap) && (is_in_slots(top, block) || is_in_slots(top - 4, block) ||
                                  is_in_slots(top - 8, block) || is_in_slots(top - 12, block)))
        return true;
    return may_search && magazine_of(heap, size_class)->debt < DEBT_MAX;
}

static void maintain_one(struct heap *heap, unsigned size_class)
{
    struct magazine *magazine = magazine_of(heap, size_class);
    unsigned held = heap_cached_blocks(heap, size_class);
    uint32_t pops = (uint32_t)heap_pops(heap, size_class);
    uint32_t pushes = held + pops + (uint32_t)magazine->counts.returned;
    bool idle = magazine->batches == 0 && pops == magazine->pops_seen;
    /* It may be longer than it needs to be, and others lack the room. */
    bool spare = magazine->batches == 0 && heap->wants_room && is_allowed(size_class);
    magazine->two_way = pops != magazine->pops_seen && pushes != magazine->pushes_seen;
    magazine->batches = 0;
    magazine->debt -= magazine->debt > 0;
    magazine->pops_seen = pops;
    magazine->pushes_seen = pushes;
    /* Batches shorten a magazine that has become too long; one without batches would stay so for
     * ever. */
    unsigned limit = capacity_limit(heap, size_class);
    if (idle || spare || magazine->capacity > limit || magazine->kind > kind_limit(magazine))
        shorten(
            heap, size_class, (unsigned)size_min((idle ? held : magazine->capacity) / 2, limit));
}

void heap_searched(struct heap *heap, unsigned size_class, unsigned blocks)
{
    uint8_t *debt = &magazine_of(heap, size_class)->debt;
    *debt = (uint8_t)size_min(*debt + 1u + blocks / BLOCKS_PER_DEBT, UINT8_MAX);
}

void heap_maintain(struct heap *heap)
{
    size_t allowed_bytes = 0;
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
        if (!was_used(heap, size_class))
            continue;
        maintain_one(heap, size_class);
        if (is_allowed(size_class))
            allowed_bytes +=
                magazine_of(heap, size_class)->capacity * (size_t)size_classes[size_class].size;
    }
    /* A signal handler may have forked in between the change of a capacity and that of the sum. */
    heap->allowed_bytes = allowed_bytes;
    heap->wants_room = false;
}

void heap_start_magazines(struct heap *heap)
{
    for (unsigned size_class = 0; size_class < CLASS_COUNT; size_class++)
        set_top(heap, size_class, 0);
    heap->next_slot = sizeof(struct heap_area) / sizeof(void *);
    memset(heap->free_range, 0, sizeof heap->free_range);
    heap->allowed_bytes = 0;
}
