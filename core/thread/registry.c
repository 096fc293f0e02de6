/* See registry.h. */
#include "thread/registry.h"

#include <string.h>

#include "base/policy.h"
#include "base/pressure.h"
#include "base/tuning.h"
#include "hardened.h"
#include "map/metadata.h"
#include "os/os.h"
#include "span/huge.h"
#include "thread/idle.h"

/* The first heap is part of the library: a small program maps none. It touches the front and the
 * records of small classes, two pages. */
static char first_area[HEAP_BYTES] __attribute__((aligned(PAGE_SIZE)));
static struct heap first_heap = {.area = (struct heap_area *)first_area, .bare = true};

struct registry registry;

__thread uint8_t registry_preferred_shard;

static size_t granted_cpus = SIZE_MAX; /* atomic relaxed: how many CPUs the system grants */

/* The owner of a heap that no thread owns, neither here nor in a child process. */
#define NOBODY ((uint64_t)1)

/* The owner of a heap that a thread works on, without owning it yet. */
#define CLAIMED ((uint64_t)2)

/* ---- Owners ---------------------------------------------------------------------------------- */

/* Makes a claimed heap the calling thread's. The process id is the system's: a child that shares
 * the memory (CLONE_VM) has its own, and its threads exist under no other. */
static void make_owned(struct heap *heap)
{
    ATOMIC_STORE_RELAXED(&heap->owner_process, os_process_id());
    ATOMIC_STORE_RELEASE(&heap->owner, identity_self());
}

void registry_count_idle(int change)
{
    __atomic_fetch_add(&registry.idle, change, __ATOMIC_RELAXED);
}

static struct pool *pool_of(const struct heap *heap)
{
    return &registry.pools[heap->shard];
}

/* A heap that was taken in a parent process may be given back in its child, where it was never
 * counted. */
static unsigned changed(unsigned owned, int change)
{
    return change < 0 && !owned ? 0 : owned + (unsigned)change;
}

/* Counts that the heap has got an owner, or lost it. Registry lock held. */
static void count_owned(const struct heap *heap, int change)
{
    struct pool *pool = pool_of(heap);
    pool->owned = changed(pool->owned, change);
    ATOMIC_STORE_RELAXED(&registry.owned, changed(registry.owned, change));
}

void registry_enter_process(struct heap *heap)
{
    lock_acquire(&registry.lock);
    count_owned(heap, 1);
    lock_release(&registry.lock);
    make_owned(heap);
    ATOMIC_STORE_RELEASE(&registry.process, (uint32_t)(identity_self() >> 32));
}

/* Registry lock held. */
static void link_heap(struct heap *heap)
{
    count_owned(heap, 1);
    heap->next = registry.all;
    ATOMIC_STORE_RELEASE(&registry.all, heap);
}

/* ---- The pool -------------------------------------------------------------------------------- */

/* Puts an owned heap on the list. Registry lock held. */
static void push(struct heap **list, struct heap *heap)
{
    ATOMIC_STORE_RELAXED(&heap->owner, 0);
    count_owned(heap, -1);
    heap->next_free = *list;
    *list = heap;
    registry.left++;
}

/* Takes the first heap of the list for the caller. Registry lock held. */
static struct heap *pop(struct heap **list)
{
    struct heap *heap = *list;
    *list = heap->next_free;
    count_owned(heap, 1);
    registry.left = 0;
    ATOMIC_STORE_RELAXED(&heap->owner, CLAIMED);
    return heap;
}

/* Puts a heap with empty magazines into the pool. Registry lock held. */
static void pool_put(struct heap *heap)
{
    struct pool *pool = pool_of(heap);
    push(heap->bare ? &pool->bare : &pool->empty, heap);
    COUNTER_ADD(&registry.empty_count, !heap->bare);
}

/* Puts a heap into the pool as it is: the next thread goes on with its blocks. False: the pool has
 * as many such heaps as shards in use. */
static bool pool_warm(struct heap *heap, unsigned ticks)
{
    lock_acquire(&registry.lock);
    bool room = registry.warm_count < shards_in_use();
    if (room) {
        registry.warm_count++;
        heap->warm_ticks = (uint8_t)ticks;
        push(&pool_of(heap)->warm, heap);
    }
    lock_release(&registry.lock);
    return room;
}

/* Takes a warm heap that has waited for `ticks` ticks; NULL: there is none. Registry lock held. */
static struct heap *take_warm(unsigned ticks)
{
    for (unsigned shard = 0; shard < SHARD_MAX && registry.warm_count; shard++) {
        struct heap **link = &registry.pools[shard].warm;
        while (*link && (*link)->warm_ticks < ticks)
            link = &(*link)->next_free;
        if (*link) {
            registry.warm_count--;
            return pop(link);
        }
    }
    return NULL;
}

/* Among the pools with a heap to take, that of the shard with the fewest owned heaps; NULL: all are
 * empty. Of several, the first: the main thread's, which waits more often than others; but the
 * preferred one if two threads or more have left at once. Registry lock held. */
static struct pool *emptiest(void)
{
    struct pool *best = NULL, *liked = &registry.pools[registry_preferred_shard];
    size_t pools = size_min(shard_count(), SHARD_MAX);
    for (struct pool *pool = registry.pools; pool < registry.pools + pools; pool++)
        if ((pool->warm || pool->empty || pool->bare) && (!best || pool->owned < best->owned))
            best = pool;
    bool rather = best && registry.left > 1 && liked->warm && liked->owned == best->owned;
    return rather ? liked : best;
}

/* The heap of the pool that is ready soonest. Registry lock held. */
static struct heap *take_from_pool(struct pool *pool)
{
    if (pool->warm) {
        registry.warm_count--;
        return pop(&pool->warm);
    }
    if (pool->empty) {
        COUNTER_ADD(&registry.empty_count, -1u);
        return pop(&pool->empty);
    }
    return pop(&pool->bare);
}

/* A heap out of the pool; NULL: that is empty. Threads that share a shard write to the same cache
 * lines and wait for the same locks: so a shard with few threads comes first, then a heap that is
 * ready soon. */
static struct heap *take_pooled(void)
{
    lock_acquire(&registry.lock);
    struct pool *pool = emptiest();
    struct heap *heap = pool ? take_from_pool(pool) : NULL;
    lock_release(&registry.lock);
    if (heap)
        make_owned(heap);
    return heap;
}

/* ---- Counts of heaps ------------------------------------------------------------------------- */

/* Registry lock held. */
static void add_counts(struct heap_counts *sum, const struct heap *heap, unsigned size_class)
{
    const struct magazine_counts *counts = &magazine_of(heap, size_class)->counts;
    sum->pops += heap_pops(heap, size_class);
    sum->cached += heap_cached_blocks(heap, size_class);
    sum->magazines.misses += ATOMIC_LOAD_RELAXED(&counts->misses);
    sum->magazines.overflows += ATOMIC_LOAD_RELAXED(&counts->overflows);
    sum->magazines.refills += ATOMIC_LOAD_RELAXED(&counts->refills);
    sum->magazines.flushes += ATOMIC_LOAD_RELAXED(&counts->flushes);
    sum->magazines.returned += ATOMIC_LOAD_RELAXED(&counts->returned);
    hardened_add_counts(sum, heap, size_class);
}

void heap_add_counts(unsigned first, unsigned last)
{
    lock_acquire(&registry.lock);
    for (unsigned size_class = first; size_class <= last; size_class++)
        registry.sums[size_class] = registry.gone[size_class];
    for (const struct heap *heap = registry.all; heap; heap = heap->next) {
        /* Reading an area without pages costs a fault a page. */
        if (ATOMIC_LOAD_RELAXED(&heap->bare))
            continue;
        for (unsigned size_class = first; size_class <= last; size_class++)
            add_counts(&registry.sums[size_class], heap, size_class);
    }
    lock_release(&registry.lock);
}

struct heap_counts heap_counts(unsigned size_class)
{
    lock_acquire(&registry.lock);
    struct heap_counts sum = registry.sums[size_class];
    lock_release(&registry.lock);
    return sum;
}

/* Moves the heap's counts to the registry. Blocks that it still caches stay allocated. */
static void take_counts(struct heap *heap)
{
    lock_acquire(&registry.lock);
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++) {
        struct heap_counts *gone = &registry.gone[size_class];
        struct magazine *magazine = magazine_of(heap, size_class);
        struct heap_counts before = *gone;
        add_counts(gone, heap, size_class);
        gone->magazines.returned += gone->cached;
        gone->cached = 0;
        if (memcmp(&before, gone, sizeof before) == 0)
            continue; /* does not touch pages of zeros */
        ATOMIC_STORE_RELAXED(&heap->area->front.top[size_class], NULL);
        ATOMIC_STORE_RELAXED(&heap->area->front.pops_left[size_class], 0);
        ATOMIC_STORE_RELAXED(&magazine->pops_at_due, 0);
        memset(&magazine->counts, 0, sizeof magazine->counts);
        hardened_clear_counts(heap, size_class);
    }
    lock_release(&registry.lock);
}

/* ---- Areas without pages --------------------------------------------------------------------- */

/* Gives the pages of a heap back, and forgets its cached blocks. The heap has no owner, and is not
 * in the pool. */
static void make_bare(struct heap *heap)
{
    take_counts(heap);
    /* The library's own data may share pages with the first one. */
    if (heap == &first_heap || !os_purge(heap->area, HEAP_BYTES))
        memset(heap->area, 0, heap->next_slot * sizeof(void *));
    hardened_make_bare(heap);
    ATOMIC_STORE_RELAXED(&heap->bare, true);
}

static void pool_empty(struct heap *heap)
{
    heap_flush(heap, SIZE_MAX);
    if (ATOMIC_LOAD_RELAXED(&registry.empty_count) >= EMPTY_HEAPS_MAX)
        make_bare(heap);
    lock_acquire(&registry.lock);
    pool_put(heap);
    lock_release(&registry.lock);
}

/* A heap that has waited for `ticks` ticks, which is no longer in the pool; NULL: there is none. */
static struct heap *withdraw_warm(unsigned ticks)
{
    lock_acquire(&registry.lock);
    struct heap *heap = take_warm(ticks);
    lock_release(&registry.lock);
    return heap;
}

void registry_flush_pool(void)
{
    struct heap *heap;
    while ((heap = withdraw_warm(0)) != NULL)
        pool_empty(heap);
}

void registry_look_at_pool(void)
{
    lock_acquire(&registry.lock);
    for (unsigned shard = 0; shard < SHARD_MAX && registry.warm_count; shard++)
        for (struct heap *heap = registry.pools[shard].warm; heap; heap = heap->next_free)
            heap->warm_ticks++;
    lock_release(&registry.lock);
}

bool registry_step_in_pool(void)
{
    struct heap *heap = withdraw_warm(WARM_TICKS);
    if (!heap)
        return false;
    if (!heap_flush(heap, STEP_BLOCKS) && pool_warm(heap, WARM_TICKS))
        return true;
    pool_empty(heap);
    return true;
}

bool heap_pool_caches(unsigned size_class, const void *block)
{
    bool found = false;
    lock_acquire(&registry.lock);
    for (unsigned shard = 0; shard < SHARD_MAX; shard++)
        for (struct heap *heap = registry.pools[shard].warm; heap && !found; heap = heap->next_free)
            found = heap_caches(heap, size_class, block);
    lock_release(&registry.lock);
    return found;
}

/* ---- Heaps that were left behind ------------------------------------------------------------- */

/* True if the owner is gone and did not give its heap back. A thread of this process does so if its
 * first call, or many, come in the very last of its destructors, after our hook, or if it ends by a
 * bare system call. A heap that was first entered in a child which shares the memory (vfork) is
 * that of the thread which made the child, though it has the child's id: it is never known to be
 * gone. Threads of a parent are gone in its child, except the one that forked: until it
 * enters its heap (registry_enter_process), any heap may be its own. */
static bool is_gone(const struct heap *heap, uint64_t owner)
{
    if (!owner || owner == CLAIMED)
        return false;
    if (identity_is_local(owner))
        return ATOMIC_LOAD_RELAXED(&heap->owner_process) == os_process_id() &&
               !os_thread_exists(identity_thread(owner));
    return identity_is_local((uint64_t)ATOMIC_LOAD_ACQUIRE(&registry.process) << 32);
}

/* Empties the heap of a parent's thread, whose magazines then count as unused. False: it is in the
 * middle of a slow path, so the thread that forked may have borrowed it. */
static bool forget_blocks(struct heap *heap)
{
    if (heap->depth)
        return false;
    idle_reset(heap);
    make_bare(heap);
    heap->slow_calls = heap->parks_left = 0;
    heap->parked_ms = 0;
    lock_acquire(&registry.lock);
    count_owned(heap, 1);
    lock_release(&registry.lock);
    return true;
}

/* Makes the heap the calling thread's if its owner is gone. */
static bool take_over(struct heap *heap)
{
    uint64_t owner = ATOMIC_LOAD_ACQUIRE(&heap->owner), found = owner;
    if (!is_gone(heap, owner) ||
        !__atomic_compare_exchange_n(
            &heap->owner, &found, CLAIMED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return false;
    if (!identity_is_local(owner) && !forget_blocks(heap)) {
        ATOMIC_STORE_RELAXED(&heap->owner, owner);
        return false;
    }
    heap->depth = 0;
    make_owned(heap);
    /* Not before: until then the gate belongs to another thread's heap. */
    idle_disown(heap);
    return true;
}

/* A heap that was left behind, or NULL. Checks a few heaps each time. */
static struct heap *find_abandoned(void)
{
    struct heap *heap = ATOMIC_LOAD_ACQUIRE(&registry.next_suspect);
    for (int i = 0; i < SUSPECTS; i++) {
        heap = heap ? heap : heap_first();
        if (take_over(heap))
            return heap;
        heap = heap->next;
        ATOMIC_STORE_RELEASE(&registry.next_suspect, heap);
    }
    return NULL;
}

/* ---- New heaps ------------------------------------------------------------------------------- */

static void assign_shard(struct heap *heap)
{
    lock_acquire(&registry.lock);
    unsigned index = registry.count++;
    lock_release(&registry.lock);
    heap->shard = (uint8_t)shard_of_heap(index);
}

/* An area that was not used yet. NULL: none is left, and `*bytes` should be mapped for more. */
static void *take_area(size_t *bytes)
{
    char *area = NULL;
    lock_acquire(&registry.lock);
    if (registry.areas < registry.areas_end) {
        area = registry.areas;
        registry.areas += HEAP_BYTES;
    }
    *bytes = (registry.count / AREAS_PART + 1) * HEAP_BYTES;
    lock_release(&registry.lock);
    return area;
}

/* Keeps areas for later, unless another thread was faster. */
static void keep_areas(char *areas, size_t bytes)
{
    lock_acquire(&registry.lock);
    bool wanted = registry.areas == registry.areas_end;
    if (wanted) {
        registry.areas = areas;
        registry.areas_end = areas + bytes;
    }
    lock_release(&registry.lock);
    if (!wanted)
        os_discard(areas, bytes);
}

/* Areas lie side by side: alone between the stacks of two threads, each would be one of the
 * mappings of which a process may have some 65,000. */
void *registry_new_area(void)
{
    size_t bytes;
    char *area = take_area(&bytes);
    if (area)
        return area;
    area = os_map(bytes, CACHE_LINE, NULL);
    if (!area)
        return os_map(HEAP_BYTES, CACHE_LINE, NULL);
    if (bytes >= REGION_SIZE)
        huge_refuse(area, bytes);
    if (bytes > HEAP_BYTES)
        keep_areas(area + HEAP_BYTES, bytes - HEAP_BYTES);
    return area;
}

static struct heap *make_heap(void)
{
    struct heap *heap = metadata_alloc(sizeof *heap);
    if (!heap)
        return NULL;
    heap->area = registry_new_area();
    if (!heap->area) {
        metadata_free(heap, sizeof *heap);
        return NULL;
    }
    heap->bare = true;
    assign_shard(heap);
    make_owned(heap);
    lock_acquire(&registry.lock);
    link_heap(heap);
    lock_release(&registry.lock);
    return heap;
}

/* ---- For threads ----------------------------------------------------------------------------- */

/* Sets up the area of zeros of a heap. */
static void start_area(struct heap *heap)
{
    heap_start_magazines(heap);
    idle_open_front(heap);
    ATOMIC_STORE_RELAXED(&heap->bare, false);
}

struct heap *registry_adopt(void)
{
    struct heap *heap = take_pooled();
    if (!heap)
        heap = find_abandoned();
    if (!heap)
        heap = make_heap();
    if (heap && heap->bare)
        start_area(heap);
    return heap;
}

void registry_give_back(struct heap *heap)
{
    if (!pool_warm(heap, 0))
        pool_empty(heap);
}

static void count_cpus(void)
{
    size_t cpus = size_max(os_cpu_count(), 1);
    cpus = size_min(cpus, ATOMIC_LOAD_RELAXED(&granted_cpus));
    ATOMIC_STORE_RELAXED(&registry.cpus, (unsigned)cpus);
    shard_init((unsigned)(POLICY(shards) ? POLICY(shards) : (long)cpus));
}

void registry_start(void)
{
    if (registry.all)
        return;
    size_t granted = reclaim_read_limits();
    if (granted != SIZE_MAX)
        ATOMIC_STORE_RELAXED(&granted_cpus, size_max(granted, 1));
    count_cpus();
    assign_shard(&first_heap);
    lock_acquire(&registry.lock);
    link_heap(&first_heap);
    pool_put(&first_heap);
    lock_release(&registry.lock);
}

void registry_read_options(void)
{
    if (heap_first())
        count_cpus();
}

/* ---- For everybody --------------------------------------------------------------------------- */

struct heap *heap_first(void)
{
    return ATOMIC_LOAD_ACQUIRE(&registry.all);
}

bool heap_in_use(const struct heap *heap)
{
    uint64_t owner = ATOMIC_LOAD_RELAXED(&heap->owner);
    return owner && (identity_is_local(owner) || heap == heap_of_thread());
}

unsigned heap_working(void)
{
    /* `idle` may briefly exceed `owned`. */
    int working = (int)ATOMIC_LOAD_RELAXED(&registry.owned) - ATOMIC_LOAD_RELAXED(&registry.idle);
    return working > 1 ? (unsigned)working : 1;
}

unsigned heap_crowd(void)
{
    return (unsigned)size_max(heap_working() / ATOMIC_LOAD_RELAXED(&registry.cpus), 1);
}

bool heap_is_only_one(void)
{
    return ATOMIC_LOAD_RELAXED(&registry.owned) <= 1;
}

/* A thread that read the pooled heap inside its gate does not exist here, and has changed nothing;
 * nor does one that had claimed it. If the forking thread had claimed it, it goes on with the heap:
 * until its next call after that, no heap is taken over. */
static void inherit_heap(struct heap *heap)
{
    uint64_t owner = ATOMIC_LOAD_RELAXED(&heap->owner);
    if (!owner && ATOMIC_LOAD_RELAXED(&heap->gate) != GATE_FREE)
        ATOMIC_STORE_RELAXED(&heap->gate, GATE_FREE);
    if (owner == CLAIMED)
        ATOMIC_STORE_RELAXED(&heap->owner, NOBODY);
}

void registry_begin_process(void)
{
    for (struct heap *heap = heap_first(); heap; heap = heap->next)
        inherit_heap(heap);
    ATOMIC_STORE_RELAXED(&registry.owned, 0);
    for (unsigned shard = 0; shard < SHARD_MAX; shard++)
        registry.pools[shard].owned = 0;
    ATOMIC_STORE_RELAXED(&registry.idle, 0);
}

void heap_repair_registry(void)
{
    /* The lists may be in the middle of a change: their heaps count as left behind. */
    for (unsigned shard = 0; shard < SHARD_MAX; shard++) {
        struct pool *pool = &registry.pools[shard];
        pool->warm = pool->empty = pool->bare = NULL;
    }
    registry.warm_count = registry.empty_count = 0;
    registry.areas_end = registry.areas;
    for (struct heap *heap = registry.all; heap; heap = heap->next)
        if (!heap->owner)
            ATOMIC_STORE_RELAXED(&heap->owner, NOBODY);
}
