/* See heap.h: the slow paths of magazines and the life of heaps. */
#include "thread/heap.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/policy.h"
#include "os/os.h"
#include "os/syscall.h"
#include "slab/bin.h"
#include "span/page_heap.h"
#include "span/purge.h"

/* After so many slow calls a heap looks after its magazines. */
enum { MAINTENANCE_PERIOD = 256 };

enum { HEADER_SLOTS = (sizeof(struct heap) + sizeof(void *) - 1) / sizeof(void *) };

/* No address is in a class map that starts here and is empty; no class but 0 is ever asked for. */
static const struct heap_front no_heap = {
    .classes_base = (uintptr_t)1 << 63, .top = {(void **)&no_heap}, .end = {(void **)&no_heap}};

__thread struct heap_front *thread_heap = (struct heap_front *)&no_heap;

/* The thread has released its heap on its way out and shall not get another one for good. */
static __thread bool has_exited;

/* The first heap is part of the library: a small program maps none. */
static CACHE_ALIGNED char first_heap[HEAP_BYTES];

static struct {
    struct lock lock CACHE_ALIGNED;
    struct heap *all;  /* atomic: release on store pairs with acquire on load */
    struct heap *free; /* lock */
    unsigned count;    /* lock */
    bool key_made;     /* lock */
    pthread_key_t key; /* const once key_made */
} registry;

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

/* Most blocks of the class that a magazine may hold. */
static unsigned capacity_limit(unsigned class)
{
    size_t blocks = (size_t)POLICY(magazine_kib) * KIB / size_classes[class].size;
    return (unsigned)size_min(size_max(blocks, 2), region_slots(REGION_KINDS - 1) - 1);
}

static unsigned top_slot(const struct heap *heap, unsigned class)
{
    return (unsigned)(ATOMIC_LOAD_RELAXED(&heap->front.top[class]) - (void **)heap);
}

static void set_top(struct heap *heap, unsigned class, unsigned slot)
{
    ATOMIC_STORE_RELAXED(&heap->front.top[class], slots_of(heap) + slot);
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
    unsigned capacity = region_slots(kind) - 1, limit = capacity_limit(class);
    ASSERT(held <= capacity);
    slots[begin] = NULL;
    memcpy(&slots[begin + 1], &slots[magazine->begin + 1], held * sizeof(void *));
    region_free(heap, magazine->begin, magazine->kind);
    magazine->kind = (uint8_t)kind;
    ATOMIC_STORE_RELAXED(&magazine->begin, (uint16_t)begin);
    set_top(heap, class, begin + held);
    heap->front.end[class] = slots + begin + size_max(size_min(capacity, limit), held);
    return true;
}

static unsigned magazine_capacity(const struct heap *heap, unsigned class)
{
    return (unsigned)(heap->front.end[class] - (void *const *)heap) - heap->magazine[class].begin;
}

/* A magazine that needs two batches between two maintenances is too small: doubles it, up to the
 * limit in bytes. True when it has grown. */
static bool magazine_adapt(struct heap *heap, unsigned class)
{
    struct magazine *magazine = &heap->magazine[class];
    if (++magazine->batches < 2 || magazine->kind + 1 >= REGION_KINDS ||
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

bool heap_refill(struct heap *heap, unsigned class)
{
    struct magazine *magazine = &heap->magazine[class];
    magazine_adapt(heap, class);
    unsigned capacity = magazine_capacity(heap, class);
    unsigned count = magazine->flushed_last ? (capacity + 1) / 2 : capacity;
    void **slots = slots_of(heap) + magazine->begin + 1;
    unsigned got = bin_refill(heap->shard, class, slots, count);
    if (!got && purge_everything())
        got = bin_refill(heap->shard, class, slots, count);
    if (!got)
        return false;
    /* The lowest address goes to the top. */
    for (unsigned low = 0, high = got - 1; low < high; low++, high--) {
        void *block = slots[low];
        slots[low] = slots[high];
        slots[high] = block;
    }
    set_top(heap, class, magazine->begin + got);
    magazine->flushed_last = false;
    COUNTER_ADD(&magazine->refills, 1);
    COUNTER_ADD(&magazine->refilled, got);
    return true;
}

/* Returns the `count` blocks that were freed first. */
static void flush_oldest(struct heap *heap, unsigned class, unsigned count)
{
    struct magazine *magazine = &heap->magazine[class];
    void **slots = slots_of(heap) + magazine->begin + 1;
    unsigned held = heap_cached_blocks(heap, class);
    if (!count)
        return;
    bin_flush(heap->shard, class, slots, count);
    memmove(slots, slots + count, (held - count) * sizeof(void *));
    set_top(heap, class, magazine->begin + held - count);
    COUNTER_ADD(&magazine->flushes, 1);
    COUNTER_ADD(&magazine->flushed, count);
}

void heap_overflow(struct heap *heap, unsigned class)
{
    struct magazine *magazine = &heap->magazine[class];
    COUNTER_ADD(&magazine->overflows, 1);
    if (magazine_adapt(heap, class))
        return;
    unsigned capacity = magazine_capacity(heap, class);
    flush_oldest(
        heap, class, magazine->flushed_last ? capacity - capacity / 4 : (capacity + 1) / 2);
    magazine->flushed_last = true;
}

void heap_flush(struct heap *heap)
{
    for (unsigned class = 1; class < CLASS_COUNT; class ++)
        flush_oldest(heap, class, heap_cached_blocks(heap, class));
}

bool heap_caches(struct heap *heap, unsigned class, const void *block)
{
    void **slots = slots_of(heap) + heap->magazine[class].begin + 1;
    for (unsigned i = 0, held = heap_cached_blocks(heap, class); i < held; i++)
        if (slots[i] == block)
            return true;
    return false;
}

/* Classes that nothing happened to since the last time return half of what they hold and shrink. */
static void maintain(struct heap *heap)
{
    heap->slow_calls = 0;
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        struct magazine *magazine = &heap->magazine[class];
        uint64_t pops = heap->front.pops[class];
        bool idle = magazine->batches == 0 && pops == magazine->pops_seen;
        magazine->batches = 0;
        magazine->pops_seen = pops;
        if (!idle)
            continue;
        unsigned held = heap_cached_blocks(heap, class);
        flush_oldest(heap, class, (held + 1) / 2);
        if (magazine->kind > 0 && held / 2 < region_slots(magazine->kind - 1u) - 1)
            magazine_move(heap, class, magazine->kind - 1u);
    }
    purge_idle();
}

/* ---- Life of heaps --------------------------------------------------------------------------- */

/* Empties all magazines and sends them home. */
static void reset_magazines(struct heap *heap)
{
    heap->front.top[CLASS_NONE] = heap->front.end[CLASS_NONE] = slots_of(heap);
    heap->next_slot = (uint16_t)home_region(CLASS_COUNT);
    memset(heap->free_region, 0, sizeof heap->free_region);
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        struct magazine *magazine = &heap->magazine[class];
        unsigned begin = home_region(class), limit = capacity_limit(class);
        slots_of(heap)[begin] = NULL;
        magazine->kind = 0;
        ATOMIC_STORE_RELAXED(&magazine->begin, (uint16_t)begin);
        set_top(heap, class, begin);
        heap->front.end[class] = slots_of(heap) + begin + size_min(region_slots(0) - 1, limit);
    }
}

/* A zero-filled heap becomes one that can be linked. */
static void start(struct heap *heap)
{
    heap->front.classes = class_map.classes;
    heap->front.classes_base = class_map.base;
    heap->front.classes_limit = class_map.limit;
    for (size_t size = 0; size <= TINY_MAX; size++)
        heap->front.tiny_class[size] = (uint8_t)size_class_of(size);
    memcpy(heap->front.mid_class, mid_class_table, sizeof mid_class_table);
    reset_magazines(heap);
}

/* Registry lock held. */
static void link_heap(struct heap *heap)
{
    heap->shard = (uint8_t)(registry.count++ % shard_count());
    heap->next = registry.all;
    ATOMIC_STORE_RELEASE(&registry.all, heap);
}

/* Registry lock held. */
static void pool(struct heap *heap)
{
    ATOMIC_STORE_RELAXED(&heap->in_use, false);
    heap->next_free = registry.free;
    registry.free = heap;
}

/* A heap out of the pool, NULL when that is empty. */
static struct heap *take_pooled(void)
{
    lock_acquire(&registry.lock);
    struct heap *heap = registry.free;
    if (heap) {
        registry.free = heap->next_free;
        ATOMIC_STORE_RELAXED(&heap->in_use, true);
    }
    lock_release(&registry.lock);
    return heap;
}

static struct heap *create(void)
{
    struct heap *heap = os_map(HEAP_BYTES, CACHE_LINE, NULL);
    if (!heap)
        return NULL;
    start(heap);
    heap->in_use = true;
    lock_acquire(&registry.lock);
    link_heap(heap);
    lock_release(&registry.lock);
    return heap;
}

static struct heap *adopt(void)
{
    if (!heap_init())
        return NULL;
    struct heap *heap = take_pooled();
    return heap ? heap : create();
}

static void give_back(struct heap *heap)
{
    heap_flush(heap);
    lock_acquire(&registry.lock);
    pool(heap);
    lock_release(&registry.lock);
}

/* Runs when a thread exits, once in each round of destructors. Others may allocate in the rounds
 * that follow, so the heap is kept until the last but one; the last belongs to tools that watch the
 * thread to its end, such as ThreadSanitizer. `round` counts from 1. */
static void thread_exits(void *round)
{
    if ((uintptr_t)round < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
        pthread_setspecific(registry.key, (char *)round + 1);
        return;
    }
    struct heap *heap = heap_of_thread();
    has_exited = true;
    thread_heap = (struct heap_front *)&no_heap;
    if (heap)
        give_back(heap);
}

static bool initialise(void)
{
    if (!page_heap_init())
        return false;
    if (!registry.all) {
        shard_init(POLICY(shards) ? (unsigned)POLICY(shards) : os_cpu_count());
        struct heap *heap = (struct heap *)first_heap;
        start(heap);
        lock_acquire(&registry.lock);
        link_heap(heap);
        pool(heap);
        lock_release(&registry.lock);
    }
    return pthread_key_create(&registry.key, thread_exits) == 0;
}

bool heap_init(void)
{
    enum { FRESH, BUSY, READY };
    static uint32_t state; /* atomic: release when ready pairs with acquire */
    for (;;) {
        uint32_t seen = ATOMIC_LOAD_ACQUIRE(&state);
        if (seen == READY)
            return true;
        if (seen == FRESH && __atomic_compare_exchange_n(
                                 &state, &seen, BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            bool ready = initialise();
            ATOMIC_STORE_RELEASE(&state, ready ? READY : FRESH);
            return ready;
        }
        cpu_relax();
    }
}

struct heap *heap_of_thread(void)
{
    struct heap_front *front = thread_heap;
    return front == &no_heap ? NULL : (struct heap *)front;
}

/* The first slow call of a thread, or one after its heap was released. The heap is in place before
 * the exit hook is set, so that an allocation inside pthread_setspecific would find it; for a key
 * below 32, which ours is as one of the first in the program, there is none. */
static struct heap *enter_first(void)
{
    bool keep = !has_exited && !POLICY(fallback);
    struct heap *heap = adopt();
    if (heap && keep) {
        thread_heap = &heap->front;
        pthread_setspecific(registry.key, (void *)1);
    }
    return heap;
}

struct heap *heap_enter(void)
{
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    struct heap *heap = heap_of_thread();
    if (UNLIKELY(!heap))
        heap = enter_first();
    if (UNLIKELY(!heap)) {
        pthread_setcancelstate(cancel_state, NULL);
        return NULL;
    }
    if (heap->depth++ == 0) {
        heap->cancel_state = cancel_state;
        if (++heap->slow_calls >= MAINTENANCE_PERIOD)
            maintain(heap);
    }
    return heap;
}

void heap_leave(struct heap *heap)
{
    if (--heap->depth)
        return;
    int cancel_state = heap->cancel_state;
    if (UNLIKELY(&heap->front != thread_heap))
        give_back(heap);
    pthread_setcancelstate(cancel_state, NULL);
}

void heap_forget(void)
{
    struct heap *heap = heap_of_thread();
    thread_heap = (struct heap_front *)&no_heap;
    if (heap)
        give_back(heap);
}

struct heap *heap_first(void)
{
    return ATOMIC_LOAD_ACQUIRE(&registry.all);
}

bool heap_in_use(const struct heap *heap)
{
    return ATOMIC_LOAD_RELAXED(&heap->in_use);
}

void heap_abandon_others(void)
{
    for (struct heap *heap = registry.all; heap; heap = heap->next) {
        if (!heap->in_use || heap == heap_of_thread())
            continue;
        for (unsigned class = 1; class < CLASS_COUNT; class ++)
            heap->magazine[class].flushed += heap_cached_blocks(heap, class);
        reset_magazines(heap);
        heap->depth = 0;
        pool(heap);
    }
}

struct lock *heap_registry_lock(void)
{
    return &registry.lock;
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
        ASSERT(magazine->begin <= top);
        ASSERT(top - magazine->begin <= magazine_capacity(heap, class));
        ASSERT(magazine_capacity(heap, class) < region_slots(magazine->kind));
        for (unsigned slot = magazine->begin + 1u; slot <= top; slot++)
            ASSERT(class_map_get(slots_of(heap)[slot]) == class);
    }
}
