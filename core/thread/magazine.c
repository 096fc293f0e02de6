/* The slow paths of magazines: see heap.h for what a magazine is.
 *
 * A refill or flush moves a batch between the magazine and the transfer cache or the bins. A
 * magazine is as long as it has to be for batches to cost little, and no longer, since what it
 * holds is lost to others: one that needs a second batch soon after the first moves to a slot
 * region of twice the size, if blocks come and go; one that nothing happened to gives half of its
 * blocks back and shrinks, and each one shrinks when the heap is flushed.
 */
#include <string.h>

#include "base/assert.h"
#include "base/poison.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "slab/shard.h"
#include "thread/heap.h"

enum { HEADER_SLOTS = (sizeof(struct heap) + sizeof(void *) - 1) / sizeof(void *) };

static void **slots_of(struct heap *heap)
{
    return (void **)heap;
}

/* ---- Slot regions ---------------------------------------------------------------------------- */

static unsigned region_slots(unsigned kind)
{
    return REGION_SLOTS_MIN << kind;
}

/* Every class has a region of the smallest kind of its own, so that a magazine can always be. */
static unsigned home_region(unsigned class)
{
    return HEADER_SLOTS + (class - 1) * REGION_SLOTS_MIN;
}

/* First slot of a region for the class; 0 when the slot area is used up. */
static unsigned region_alloc(struct heap *heap, unsigned class, unsigned kind)
{
    if (kind == 0)
        return home_region(class);
    unsigned first = heap->free_region[kind];
    if (first) {
        heap->free_region[kind] = (uint16_t)(uintptr_t)slots_of(heap)[first];
        return first;
    }
    first = heap->next_slot;
    if (first + region_slots(kind) > HEAP_SLOTS)
        return 0;
    heap->next_slot = (uint16_t)(first + region_slots(kind));
    return first;
}

static void region_free(struct heap *heap, unsigned first, unsigned kind)
{
    if (kind == 0)
        return;
    slots_of(heap)[first] = (void *)(uintptr_t)heap->free_region[kind];
    heap->free_region[kind] = (uint16_t)first;
}

/* What the only thread caches is lost to nobody: so many times as many tiny blocks. */
enum { ONLY_ONE_FACTOR = 4 };

/* Most blocks of the class that a magazine may hold. */
static unsigned capacity_limit(unsigned class)
{
    size_t blocks = (size_t)POLICY(magazine_kib) * KIB / heap_crowd() / size_classes[class].size;
    if (class <= TINY_CLASS_LAST && heap_is_only_one())
        blocks *= ONLY_ONE_FACTOR;
    return (unsigned)size_min(
        size_max(blocks, size_class_cached_min(class, heap_crowd())),
        region_slots(REGION_KINDS - 1) - 1);
}

static unsigned top_slot(const struct heap *heap, unsigned class)
{
    return (unsigned)(ATOMIC_LOAD_RELAXED(&heap->front.top[class]) - (void **)heap);
}

static void set_top(struct heap *heap, unsigned class, unsigned slot)
{
    ATOMIC_STORE_RELAXED(&heap->front.top[class], slots_of(heap) + slot);
}

/* Makes the region of kind `kind` at slot `begin`, which holds `held` blocks, the magazine of the
 * class. */
static void magazine_place(
    struct heap *heap, unsigned class, unsigned begin, unsigned kind, unsigned held)
{
    struct magazine *magazine = &heap->magazine[class];
    void **slots = slots_of(heap);
    size_t capacity = size_min(region_slots(kind) - 1, capacity_limit(class));
    slots[begin] = NULL;
    magazine->kind = (uint8_t)kind;
    magazine->region = (uint16_t)begin;
    ATOMIC_STORE_RELAXED(&magazine->begin, (uint16_t)begin);
    set_top(heap, class, begin + held);
    heap->front.end[class] = slots + begin + size_max(capacity, held);
}

/* Moves the magazine, with the blocks it holds, to a region of another size. False when there is no
 * room for one; the magazine is then as before. */
static bool magazine_move(struct heap *heap, unsigned class, unsigned kind)
{
    struct magazine *magazine = &heap->magazine[class];
    unsigned begin = region_alloc(heap, class, kind);
    if (!begin)
        return false;
    void **slots = slots_of(heap);
    unsigned held = heap_cached_blocks(heap, class);
    ASSERT(held < region_slots(kind));
    memcpy(&slots[begin + 1], &slots[magazine->begin + 1], held * sizeof(void *));
    region_free(heap, magazine->region, magazine->kind);
    magazine_place(heap, class, begin, kind, held);
    return true;
}

static unsigned magazine_capacity(const struct heap *heap, unsigned class)
{
    return (unsigned)(heap->front.end[class] - (void *const *)heap) - heap->magazine[class].begin;
}

/* More at a time is hardly cheaper, and a long magazine that is a little too short would send much
 * back and forth. */
enum { BATCH_MAX = 128 };

/* A magazine is long enough when a batch comes with so many pops: then it costs little. */
enum { POPS_PER_BATCH = 2048 };

/* Where blocks only come or only go, a longer magazine keeps more from others and saves little. */
enum { ONE_WAY_KIND_MAX = 2 };

static unsigned kind_limit(const struct magazine *magazine)
{
    return magazine->two_way ? REGION_KINDS - 1 : ONE_WAY_KIND_MAX;
}

/* A magazine that needs a second batch between two maintenances, and soon after the first, is too
 * small: doubles it, up to the limit in bytes. True when it has grown. */
static bool magazine_adapt(struct heap *heap, unsigned class, unsigned pops_min)
{
    struct magazine *magazine = &heap->magazine[class];
    uint64_t pops = heap->front.pops[class];
    uint64_t since = pops - magazine->pops_at_batch;
    bool soon = since >= pops_min && since < POPS_PER_BATCH;
    magazine->pops_at_batch = pops;
    if (++magazine->batches < 2 || !soon || magazine->kind >= kind_limit(magazine) ||
        region_slots(magazine->kind) - 1 >= capacity_limit(class))
        return false;
    return magazine_move(heap, class, magazine->kind + 1u);
}

unsigned heap_cached_blocks(const struct heap *heap, unsigned class)
{
    /* Another thread's magazine may be on its way to another region: look again then. */
    for (int i = 0; i < 1000; i++) {
        unsigned begin = ATOMIC_LOAD_RELAXED(&heap->magazine[class].begin);
        unsigned top = top_slot(heap, class);
        if (top - begin < region_slots(REGION_KINDS - 1))
            return top - begin;
    }
    return 0;
}

/* ---- Refill and flush ------------------------------------------------------------------------ */

/* A batch from the bins. Its lowest address goes to the top. Before memory grows for this class,
 * what lies in the transfer caches of other shards and classes serves it. */
static unsigned refill_from_bins(
    unsigned shard, unsigned class, void **slots, unsigned count, bool fresh)
{
    unsigned got = bin_refill(shard, class, slots, count, fresh ? REFILL_FRESH : REFILL_USED);
    if (!got && !fresh)
        return 0;
    if (!got)
        got = transfer_take_from_others(shard, class, slots, count);
    for (unsigned step = 0; !got && step < SHARD_ROOM_STEPS; step++)
        if (shard_make_room(shard, step))
            got = bin_refill(shard, class, slots, count, REFILL_FRESH);
    if (!got)
        got = bin_refill(shard, class, slots, count, REFILL_MAP);
    if (UNLIKELY(!got) && reclaim_everything())
        got = bin_refill(shard, class, slots, count, REFILL_MAP);
    for (unsigned low = 0, high = got; low + 1 < high; low++) {
        void *block = slots[low];
        slots[low] = slots[--high];
        slots[high] = block;
    }
    return got;
}

/* What comes from a transfer cache lies in the cache of the thread that freed it, mostly. Those at
 * the end are popped first. */
static void prefetch(void *const *blocks, unsigned count)
{
    enum { PREFETCH_MAX = 32 };
    for (unsigned i = 0; i < count && i < PREFETCH_MAX; i++)
        __builtin_prefetch(blocks[count - 1 - i], 1);
}

bool heap_refill(struct heap *heap, unsigned class, bool fresh)
{
    struct magazine *magazine = &heap->magazine[class];
    bool single = fresh && size_class_is_long(class);
    /* The transfer cache may have had little to give: then a longer magazine would not have helped.
     */
    if (!single)
        magazine_adapt(heap, class, magazine_capacity(heap, class));
    unsigned capacity = magazine_capacity(heap, class);
    unsigned count = magazine->flushed_last ? (capacity + 1) / 2 : capacity;
    count = single ? 1 : (unsigned)size_min(count, BATCH_MAX);
    void **slots = slots_of(heap) + magazine->begin + 1;
    unsigned got = transfer_take(heap->shard, class, slots, count);
    prefetch(slots, got);
    if (!got)
        got = refill_from_bins(heap->shard, class, slots, count, fresh);
    if (!got)
        return false;
    poison_blocks(slots, got, size_classes[class].size);
    set_top(heap, class, magazine->begin + got);
    magazine->flushed_last = false;
    COUNTER_ADD(&magazine->refills, 1);
    COUNTER_ADD(&magazine->refilled, got);
    return true;
}

static void *make_aligned(struct heap *heap, unsigned class, unsigned units)
{
    void *block = bin_take_aligned(heap->shard, class, units, false);
    for (unsigned step = 0; !block && step < SHARD_ROOM_STEPS; step++)
        if (shard_make_room(heap->shard, step))
            block = bin_take_aligned(heap->shard, class, units, false);
    if (!block)
        block = bin_take_aligned(heap->shard, class, units, true);
    if (UNLIKELY(!block) && reclaim_everything())
        block = bin_take_aligned(heap->shard, class, units, true);
    return block;
}

/* Brings one of the blocks that the magazine holds to its top. */
static bool find_aligned(struct heap *heap, unsigned class, size_t alignment)
{
    void **top = heap->front.top[class], **slots = slots_of(heap) + heap->magazine[class].begin + 1;
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

void *heap_take_aligned(struct heap *heap, unsigned class, size_t alignment)
{
    struct magazine *magazine = &heap->magazine[class];
    COUNTER_ADD(&magazine->misses, 1);
    if (find_aligned(heap, class, alignment))
        return magazine_pop(&heap->front, class);
    void *block = make_aligned(heap, class, (unsigned)(alignment >> UNIT_SHIFT));
    if (block) {
        COUNTER_ADD(&magazine->refilled, 1);
        COUNTER_ADD(&heap->front.pops[class], 1);
    } else {
        COUNTER_ADD(&magazine->misses, -(uint64_t)1);
    }
    return block;
}

bool heap_resize(struct heap *heap, struct slab *slab, unsigned class)
{
    unsigned before = slab->size_class;
    if (!bin_resize(slab, class))
        return false;
    COUNTER_ADD(&heap->magazine[before].overflows, 1);
    COUNTER_ADD(&heap->magazine[before].flushed, 1);
    COUNTER_ADD(&heap->magazine[class].misses, 1);
    COUNTER_ADD(&heap->magazine[class].refilled, 1);
    COUNTER_ADD(&heap->front.pops[class], 1);
    return true;
}

void magazine_send(unsigned shard, unsigned class, void **blocks, unsigned count)
{
    unsigned kept = transfer_put(shard, class, blocks, count);
    for (unsigned batch; kept < count; kept += batch) {
        batch = (unsigned)size_min(count - kept, FLUSH_MAX);
        bin_flush(shard, class, blocks + kept, batch);
    }
}

static void count_flush(struct magazine *magazine, unsigned count)
{
    COUNTER_ADD(&magazine->flushes, 1);
    COUNTER_ADD(&magazine->flushed, count);
}

/* Returns `count` blocks from the top: those below need not move. */
static void flush_top(struct heap *heap, unsigned class, unsigned count)
{
    struct magazine *magazine = &heap->magazine[class];
    if (!count)
        return;
    unsigned first = top_slot(heap, class) + 1 - count;
    magazine_send(heap->shard, class, slots_of(heap) + first, count);
    set_top(heap, class, first - 1);
    count_flush(magazine, count);
}

unsigned magazine_take_bottom(
    struct heap *heap, unsigned class, void **blocks, unsigned most, unsigned keep)
{
    struct magazine *magazine = &heap->magazine[class];
    /* Acquire pairs with the release of STORE_HOT, for what the owner put in. */
    unsigned top = (unsigned)(ATOMIC_LOAD_ACQUIRE(&heap->front.top[class]) - (void **)heap);
    unsigned begin = magazine->begin, held = top - begin;
    unsigned count = held > keep ? (unsigned)size_min(held - keep, most) : 0;
    if (!count)
        return 0;
    memcpy(blocks, &slots_of(heap)[begin + 1], count * sizeof *blocks);
    ATOMIC_STORE_RELAXED(&slots_of(heap)[begin + count], NULL);
    KEEP_STORE_ORDER();
    ATOMIC_STORE_RELAXED(&magazine->begin, (uint16_t)(begin + count));
    count_flush(magazine, count);
    ATOMIC_STORE_RELAXED(&heap->drained, true);
    return count;
}

void heap_settle_magazines(struct heap *heap)
{
    void **slots = slots_of(heap);
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        struct magazine *magazine = &heap->magazine[class];
        unsigned begin = magazine->begin, region = magazine->region;
        if (begin == region)
            continue;
        unsigned held = top_slot(heap, class) - begin;
        memmove(&slots[region + 1], &slots[begin + 1], held * sizeof *slots);
        magazine_place(heap, class, region, magazine->kind, held);
    }
}

void heap_find_sentinels(struct heap *heap)
{
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        unsigned slot = top_slot(heap, class);
        while (slots_of(heap)[slot])
            slot--;
        heap->magazine[class].begin = (uint16_t)slot;
    }
}

void heap_overflow(struct heap *heap, unsigned class)
{
    struct magazine *magazine = &heap->magazine[class];
    magazine->debt -= magazine->debt > 0;
    bool grown = magazine_adapt(heap, class, 0);
    unsigned capacity = magazine_capacity(heap, class);
    /* The limit may have fallen meanwhile, so that the longer region has no more room. */
    if (grown && heap_cached_blocks(heap, class) < capacity)
        return;
    unsigned count = magazine->flushed_last ? capacity - capacity / 4 : (capacity + 1) / 2;
    flush_top(heap, class, (unsigned)size_min(count, BATCH_MAX));
    magazine->flushed_last = true;
}

void heap_flush(struct heap *heap)
{
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        struct magazine *magazine = &heap->magazine[class];
        flush_top(heap, class, heap_cached_blocks(heap, class));
        magazine->batches = 0;
        /* The next owner of the heap, or phase of the program, may need less. */
        if (magazine->kind > 0)
            magazine_move(heap, class, magazine->kind - 1u);
    }
}

bool heap_caches(struct heap *heap, unsigned class, const void *block)
{
    void **slots = slots_of(heap) + heap->magazine[class].begin + 1;
    for (unsigned i = 0, held = heap_cached_blocks(heap, class); i < held; i++)
        if (slots[i] == block)
            return true;
    return false;
}

/* Most double frees follow soon upon the first. */
enum { JUST_FREED = 16 };

bool heap_suspects(struct heap *heap, unsigned class, const void *block, bool may_search)
{
    void **top = heap->front.top[class], *held;
    /* Outside the gate others may move the sentinel. */
    for (unsigned i = 0; i < JUST_FREED && (held = ATOMIC_LOAD_RELAXED(top)) != NULL; i++, top--)
        if (held == block)
            return true;
    return may_search && heap->magazine[class].debt < DEBT_MAX;
}

void heap_maintain(struct heap *heap)
{
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        struct magazine *magazine = &heap->magazine[class];
        unsigned held = heap_cached_blocks(heap, class);
        uint64_t pops = heap->front.pops[class];
        uint64_t pushes = held + pops + magazine->flushed - magazine->refilled;
        bool idle = magazine->batches == 0 && pops == magazine->pops_seen;
        magazine->two_way = pops != magazine->pops_seen && pushes != magazine->pushes_seen;
        magazine->batches = 0;
        magazine->debt -= magazine->debt > 0;
        magazine->pops_seen = pops;
        magazine->pushes_seen = pushes;
        if (!idle && magazine->kind <= kind_limit(magazine))
            continue;
        flush_top(heap, class, (held + 1) / 2);
        if (magazine->kind > 0 && held / 2 < region_slots(magazine->kind - 1u) - 1)
            magazine_move(heap, class, magazine->kind - 1u);
    }
}

void heap_reset_magazines(struct heap *heap)
{
    heap->front.top[CLASS_NONE] = heap->front.end[CLASS_NONE] = slots_of(heap);
    heap->next_slot = (uint16_t)home_region(CLASS_COUNT);
    memset(heap->free_region, 0, sizeof heap->free_region);
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        struct magazine *magazine = &heap->magazine[class];
        magazine_place(heap, class, home_region(class), 0, 0);
        magazine->batches = 0;
        magazine->debt = 0;
        magazine->flushed_last = magazine->two_way = false;
        magazine->pops_seen = magazine->pushes_seen = magazine->pops_at_batch = 0;
    }
}

void heap_check(struct heap *heap)
{
    ASSERT(heap->front.null_slot == NULL);
    ASSERT(heap->next_slot <= HEAP_SLOTS);
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        const struct magazine *magazine = &heap->magazine[class];
        unsigned top = top_slot(heap, class);
        ASSERT(magazine->kind < REGION_KINDS);
        ASSERT(slots_of(heap)[magazine->begin] == NULL);
        ASSERT(magazine->region <= magazine->begin && magazine->begin <= top);
        ASSERT(top - magazine->begin <= magazine_capacity(heap, class));
        ASSERT(magazine_capacity(heap, class) < region_slots(magazine->kind));
        for (unsigned slot = magazine->begin + 1u; slot <= top; slot++) {
            /* The class map has class 0 for slabs beyond its window. */
            const struct slab *slab = slab_lookup(slots_of(heap)[slot]);
            ASSERT(slab && slab->size_class == class);
        }
    }
}
