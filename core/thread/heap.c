/* See heap.h: the life of heaps. magazine.c has the slow paths of their magazines. */
#include "thread/heap.h"

#include <pthread.h>
#include <string.h>

#include "base/assert.h"
#include "base/policy.h"
#include "map/metadata.h"
#include "os/os.h"
#include "os/syscall.h"
#include "slab/bin.h"
#include "slab/depot.h"
#include "span/page_heap.h"
#include "thread/fork.h"
#include "thread/idle.h"
#include "thread/tick.h"

/* After so many slow calls a heap looks after its magazines. */
enum { MAINTENANCE_PERIOD = 256 };

/* No address is in a class map that starts here and is empty; no class but 0 is ever asked for. */
static const struct heap_front no_heap = {
    .classes_base = (uintptr_t)1 << 63, .top = {(void **)&no_heap}};

__thread struct heap_front *thread_heap = (struct heap_front *)&no_heap;

/* The thread's heap, also while it is parked: out of the way of the hit paths, so that the next
 * call comes by a slow path and looks after the purge. */
static __thread struct heap *own_heap;

/* A heap is parked so often in a tick of the clock: enough to see a busy thread become one that
 * allocates now and then, and little beside what a busy thread does in a tick. That is so while
 * much lies free, and for a thread that was found idle; fewer suffice where there are but idle
 * threads to look after. */
enum { PARKS_MAX = 256, PARKS_AMONG_OTHERS = 32 };

/* The thread has released its heap on its way out and shall not get another one for good. */
static __thread bool has_exited;

/* The first heap is part of the library: a small program maps none. */
static CACHE_ALIGNED char first_area[HEAP_BYTES];
static struct heap first_heap = {.area = (struct heap_area *)first_area, .bare = true};

static struct {
    struct lock lock CACHE_ALIGNED;
    unsigned warm_count;       /* lock */
    struct heap *all;          /* atomic: release on store pairs with acquire on load */
    struct heap *warm;         /* lock: heaps that no thread owns, with blocks in magazines */
    struct heap *free;         /* lock: heaps that no thread owns, with empty magazines */
    struct heap *bare;         /* lock: the same, and their areas are all zero */
    unsigned free_count;       /* written under lock, read by any thread */
    unsigned count;            /* lock */
    char *unused;              /* lock: memory for areas, up to `unused_end` */
    char *unused_end;          /* lock */
    struct heap *next_suspect; /* atomic: release on store, acquire on load; see reclaim */
    struct heap_counts gone[CLASS_COUNT]; /* lock: counts of areas that became zero since */
    unsigned owned;    /* written under lock, read by any thread: heaps with an owner */
    unsigned crowd;    /* the same: how many of them a CPU, 1 at least */
    unsigned cpus;     /* const after initialisation */
    pthread_key_t key; /* const after initialisation */
    uint32_t process;  /* atomic, any thread: see enter_process; release, acquire */
    bool has_key;      /* const after initialisation */
} registry;

/* See heap_start_early. */
static struct {
    uint64_t thread;   /* atomic relaxed, any thread: its identity, 0 when it is over */
    struct heap *heap; /* that thread only: which it took */
} early;

/* The owner of a heap that no thread of this or a later process has. */
#define NOBODY ((uint64_t)1)

/* The owner of a heap that some thread works on without being its owner, or not yet. */
#define CLAIMED ((uint64_t)2)

/* Between the two it is the id of the thread that initialises. */
#define FRESH ((uint32_t)0)
#define READY UINT32_MAX

static uint32_t init_state; /* atomic: release when ready pairs with acquire */

/* ---- Owners ---------------------------------------------------------------------------------- */

/* A heap whose area is all zero becomes one whose magazines were never used. */
static void start(struct heap *heap)
{
    heap_start_magazines(heap);
    idle_open_front(heap);
    heap->bare = false;
}

/* Makes a claimed heap the calling thread's. The process id is the system's: a child that shares
 * the memory (CLONE_VM) has one of its own, and asking for its threads by another says that they
 * are gone. */
static void own(struct heap *heap)
{
    ATOMIC_STORE_RELAXED(&heap->owner_process, os_process_id());
    ATOMIC_STORE_RELEASE(&heap->owner, identity_self());
}

/* Registry lock held. A heap that was taken in a parent process may be given back in its child,
 * where it was never counted. */
static void count_owned(int change)
{
    unsigned owned = registry.owned;
    owned = change < 0 && !owned ? 0 : owned + (unsigned)change;
    ATOMIC_STORE_RELAXED(&registry.owned, owned);
    ATOMIC_STORE_RELAXED(&registry.crowd, (unsigned)size_max(owned / registry.cpus, 1));
}

/* Registry lock held. */
static void count_free(int change)
{
    ATOMIC_STORE_RELAXED(&registry.free_count, registry.free_count + (unsigned)change);
}

/* Registry lock held. */
static void link_heap(struct heap *heap)
{
    count_owned(1);
    heap->shard = (uint8_t)shard_of_heap(registry.count++);
    heap->next = registry.all;
    ATOMIC_STORE_RELEASE(&registry.all, heap);
}

/* Puts a heap with empty magazines into the pool. Registry lock held. */
static void pool(struct heap *heap)
{
    struct heap **list = heap->bare ? &registry.bare : &registry.free;
    ATOMIC_STORE_RELAXED(&heap->owner, 0);
    count_owned(-1);
    count_free(!heap->bare);
    heap->next_free = *list;
    *list = heap;
}

/* Puts a heap into the pool as it is: the next thread goes on with its blocks. False when there are
 * as many of the kind as shards, one a CPU. */
static bool pool_warm(struct heap *heap)
{
    lock_acquire(&registry.lock);
    bool room = registry.warm_count < shards_in_use();
    if (room) {
        registry.warm_count++;
        count_owned(-1);
        heap->warm_ticks = 0;
        heap->next_free = registry.warm;
        ATOMIC_STORE_RELAXED(&heap->owner, 0);
        registry.warm = heap;
    }
    lock_release(&registry.lock);
    return room;
}

/* Takes the first warm heap that nobody took for so many ticks; NULL when there is none. Registry
 * lock held. */
static struct heap *take_warm(unsigned ticks)
{
    struct heap **link = &registry.warm;
    while (*link && (*link)->warm_ticks < ticks)
        link = &(*link)->next_free;
    struct heap *heap = *link;
    if (heap) {
        *link = heap->next_free;
        registry.warm_count--;
        count_owned(1);
        ATOMIC_STORE_RELAXED(&heap->owner, CLAIMED);
    }
    return heap;
}

/* A heap out of the pool, NULL when that is empty. */
static struct heap *take_pooled(void)
{
    lock_acquire(&registry.lock);
    struct heap *heap = take_warm(0);
    struct heap **list = registry.free ? &registry.free : &registry.bare;
    if (!heap && *list) {
        heap = *list;
        ATOMIC_STORE_RELAXED(&heap->owner, CLAIMED);
        *list = heap->next_free;
        count_free(-!heap->bare);
        count_owned(1);
    }
    lock_release(&registry.lock);
    if (heap)
        own(heap);
    return heap;
}

/* Registry lock held. */
static void add_counts(struct heap_counts *sum, const struct heap *heap, unsigned class)
{
    const struct magazine_counts *counts = &magazine_of(heap, class)->counts;
    sum->pops += ATOMIC_LOAD_RELAXED(&heap->area->front.pops[class]);
    sum->cached += heap_cached_blocks(heap, class);
    sum->magazines.misses += ATOMIC_LOAD_RELAXED(&counts->misses);
    sum->magazines.overflows += ATOMIC_LOAD_RELAXED(&counts->overflows);
    sum->magazines.refills += ATOMIC_LOAD_RELAXED(&counts->refills);
    sum->magazines.flushes += ATOMIC_LOAD_RELAXED(&counts->flushes);
    sum->magazines.returned += ATOMIC_LOAD_RELAXED(&counts->returned);
}

struct heap_counts heap_counts(unsigned class)
{
    lock_acquire(&registry.lock);
    struct heap_counts sum = registry.gone[class];
    for (const struct heap *heap = registry.all; heap; heap = heap->next)
        add_counts(&sum, heap, class);
    lock_release(&registry.lock);
    return sum;
}

/* The registry takes over what the heap has counted. What it still caches stays allocated. */
static void take_counts(struct heap *heap)
{
    lock_acquire(&registry.lock);
    for (unsigned class = 1; class < CLASS_COUNT; class ++) {
        struct heap_counts *gone = &registry.gone[class];
        struct magazine_counts *counts = &magazine_of(heap, class)->counts;
        struct heap_counts before = *gone;
        add_counts(gone, heap, class);
        gone->magazines.returned += gone->cached;
        gone->cached = 0;
        if (memcmp(&before, gone, sizeof before) == 0)
            continue; /* not to touch what is all zero */
        ATOMIC_STORE_RELAXED(&heap->area->front.top[class], NULL);
        ATOMIC_STORE_RELAXED(&heap->area->front.pops[class], 0);
        memset(counts, 0, sizeof *counts);
    }
    lock_release(&registry.lock);
}

/* Gives the pages of a heap's area back, and with them what it caches. The heap is no thread's, and
 * not in the pool. */
static void make_bare(struct heap *heap)
{
    take_counts(heap);
    /* The library's own data may share pages with the first one. */
    if (heap == &first_heap || !os_purge(heap->area, HEAP_BYTES))
        memset(heap->area, 0, heap->next_slot * sizeof(void *));
    heap->bare = true;
}

/* So many heaps in the pool keep their pages. */
enum { FREE_MAX = 16 };

static void pool_empty(struct heap *heap)
{
    heap_flush(heap);
    if (ATOMIC_LOAD_RELAXED(&registry.free_count) >= FREE_MAX)
        make_bare(heap);
    lock_acquire(&registry.lock);
    pool(heap);
    lock_release(&registry.lock);
}

void heap_flush_pooled(unsigned ticks)
{
    for (;;) {
        lock_acquire(&registry.lock);
        struct heap *heap = take_warm(ticks);
        lock_release(&registry.lock);
        if (!heap)
            return;
        pool_empty(heap);
    }
}

size_t heap_purge(void)
{
    heap_flush_pooled(0);
    return depot_purge();
}

bool heap_pool_caches(unsigned class, const void *block)
{
    bool found = false;
    lock_acquire(&registry.lock);
    for (struct heap *heap = registry.warm; heap && !found; heap = heap->next_free)
        found = heap_caches(heap, class, block);
    lock_release(&registry.lock);
    return found;
}

void heap_tick_pool(void)
{
    lock_acquire(&registry.lock);
    for (struct heap *heap = registry.warm; heap; heap = heap->next_free)
        heap->warm_ticks++;
    lock_release(&registry.lock);
    heap_flush_pooled(2);
}

/* True when the owner is gone and did not give its heap back. One of this process made its first
 * call ever in the very last of its destructors, when no hook was called any more, or ended by a
 * bare system call. Those of a parent are gone in its child, but for the thread that forked: until
 * that has shown up (enter_process), any heap may be its own. */
static bool is_gone(const struct heap *heap, uint64_t owner)
{
    if (!owner || owner == CLAIMED)
        return false;
    if (identity_is_local(owner))
        return !os_thread_exists(ATOMIC_LOAD_RELAXED(&heap->owner_process), identity_thread(owner));
    return identity_is_local((uint64_t)ATOMIC_LOAD_ACQUIRE(&registry.process) << 32);
}

/* Makes the heap of a parent's thread one whose magazines were never used. False when it is in the
 * middle of a slow path: then the thread that forked may have borrowed it. */
static bool forget_blocks(struct heap *heap)
{
    if (heap->depth)
        return false;
    idle_reset(heap);
    make_bare(heap);
    heap->slow_calls = heap->parks_left = 0;
    heap->parked_ms = 0;
    lock_acquire(&registry.lock);
    count_owned(1);
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
    own(heap);
    /* Not before: until then the gate is that of somebody else's heap. */
    idle_disown(heap);
    return true;
}

/* A heap that was left behind, or NULL. Looks at a few heaps each time. */
static struct heap *reclaim(void)
{
    enum { SUSPECTS = 8 };
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

/* Areas are mapped several at a time: a process may have only so many mappings, and each stack is
 * two of them. */
static const size_t chunk_bytes = (size_t)8 * HEAP_BYTES;

/* The next area of the chunk, NULL when it is used up. Registry lock held. */
static struct heap_area *take_unused(void)
{
    char *memory = registry.unused;
    if (memory == registry.unused_end)
        return NULL;
    registry.unused = memory + HEAP_BYTES;
    return (struct heap_area *)memory;
}

static struct heap_area *map_area(void)
{
    lock_acquire(&registry.lock);
    struct heap_area *area = take_unused();
    lock_release(&registry.lock);
    if (area)
        return area;
    char *chunk = os_map(chunk_bytes, CACHE_LINE, NULL);
    if (!chunk)
        return os_map(HEAP_BYTES, CACHE_LINE, NULL);
    lock_acquire(&registry.lock);
    area = take_unused();
    if (!area) {
        registry.unused = chunk;
        registry.unused_end = chunk + chunk_bytes;
        area = take_unused();
        chunk = NULL;
    }
    lock_release(&registry.lock);
    if (chunk)
        os_discard(chunk, chunk_bytes);
    return area;
}

static struct heap *create(void)
{
    struct heap *heap = metadata_alloc(sizeof *heap);
    if (!heap)
        return NULL;
    heap->area = map_area();
    if (!heap->area) {
        metadata_free(heap, sizeof *heap);
        return NULL;
    }
    heap->bare = true;
    own(heap);
    lock_acquire(&registry.lock);
    link_heap(heap);
    lock_release(&registry.lock);
    return heap;
}

static struct heap *adopt(void)
{
    struct heap *heap = take_pooled();
    if (!heap)
        heap = reclaim();
    if (!heap)
        heap = create();
    if (heap && heap->bare)
        start(heap);
    return heap;
}

static void give_back(struct heap *heap)
{
    if (!pool_warm(heap))
        pool_empty(heap);
}

/* ---- The thread's own ------------------------------------------------------------------------ */

struct heap *heap_of_thread(void)
{
    return own_heap;
}

/* Makes the heap that of the thread. */
static void keep_heap(struct heap *heap)
{
    idle_enter(heap);
    ATOMIC_STORE_RELAXED(&heap->kept, true);
    idle_leave(heap);
    own_heap = heap;
    thread_heap = &heap->area->front;
}

/* Takes it from the thread, which may have none; the heap is then as it was before others closed or
 * drained it. */
static struct heap *lose_heap(void)
{
    struct heap *heap = own_heap;
    thread_heap = (struct heap_front *)&no_heap;
    own_heap = NULL;
    if (heap)
        idle_disown(heap);
    return heap;
}

/* Heaps are parked whenever a thread leaves a slow path; atomic relaxed, any thread. */
static bool parked_for_good;

void heap_stay_parked(bool stay)
{
    ATOMIC_STORE_RELAXED(&parked_for_good, stay);
}

/* There is memory to give back, or other threads may go idle with some. */
static bool purge_matters(void)
{
    return purge_armed() || !heap_is_only_one();
}

/* Whether to park the heap now. */
static bool is_to_park(const struct heap *heap)
{
    return ATOMIC_LOAD_RELAXED(&parked_for_good) || (purge_matters() && heap->parks_left);
}

static void park(struct heap *heap)
{
    heap->parks_left -= heap->parks_left > 0;
    ATOMIC_STORE_RELAXED(&heap->parked, true);
    thread_heap = (struct heap_front *)&no_heap;
}

/* ---- Start and end --------------------------------------------------------------------------- */

/* Runs when a thread exits, among its other destructors. Those that come later and allocate borrow
 * a heap for each call. */
static void thread_exits(void *unused)
{
    (void)unused;
    has_exited = true;
    heap_forget();
}

static bool initialise(void)
{
    if (!page_heap_init())
        return false;
    fork_start();
    if (!registry.all) {
        registry.cpus = (unsigned)size_max(os_cpu_count(), 1);
        shard_init(POLICY(shards) ? (unsigned)POLICY(shards) : registry.cpus);
        lock_acquire(&registry.lock);
        link_heap(&first_heap);
        pool(&first_heap);
        lock_release(&registry.lock);
    }
    /* Without a key (a program may use them up) heaps of exited threads are found by reclaim. */
    registry.has_key = pthread_key_create(&registry.key, thread_exits) == 0;
    return true;
}

/* Waits a moment for the thread that initialises; false when that is over, one way or other. */
static bool await_initialisation(void)
{
    enum { ROUNDS = 1000 };
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t seen = ATOMIC_LOAD_ACQUIRE(&init_state);
        if (seen == READY || seen == FRESH)
            return false;
        cpu_relax();
    }
    return true;
}

/* Prepares everything that heaps need, once; false when the system has no memory. */
static bool init_once(void)
{
    while (ATOMIC_LOAD_ACQUIRE(&init_state) != READY) {
        /* Each time: in a child of fork this finds out that who initialised does not exist. */
        uint32_t fresh = FRESH, self = identity_thread(identity_self());
        if (__atomic_compare_exchange_n(
                &init_state, &fresh, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            bool ready = initialise();
            ATOMIC_STORE_RELEASE(&init_state, ready ? READY : FRESH);
            return ready;
        }
        while (await_initialisation() && identity_thread(identity_self()) == self)
            continue;
    }
    return true;
}

void heap_forget(void)
{
    struct heap *heap = lose_heap();
    if (heap)
        give_back(heap);
}

void heap_prepare_fork(void)
{
    /* A signal handler may fork inside the initialisation: both processes then go on with it. */
    if (ATOMIC_LOAD_RELAXED(&init_state) != identity_thread(identity_self()))
        init_once();
}

void heap_begin_process(uint32_t before, uint32_t now)
{
    if (before && init_state == before)
        ATOMIC_STORE_RELAXED(&init_state, now);
    else if (init_state != READY)
        ATOMIC_STORE_RELAXED(&init_state, FRESH);
    ATOMIC_STORE_RELAXED(&registry.owned, 0);
    ATOMIC_STORE_RELAXED(&registry.crowd, 1);
}

void heap_repair_registry(void)
{
    /* The lists may be in the middle of a change: all their heaps count as left behind, and the
     * rest of the chunk is lost. */
    registry.warm = registry.free = registry.bare = NULL;
    registry.warm_count = registry.free_count = 0;
    registry.unused = registry.unused_end = NULL;
    for (struct heap *heap = registry.all; heap; heap = heap->next)
        if (!heap->owner)
            ATOMIC_STORE_RELAXED(&heap->owner, NOBODY);
}

/* ---- Early calls -----------------------------------------------------------------------------
 */

void heap_start_early(void)
{
    ATOMIC_STORE_RELAXED(&early.thread, identity_self());
    if (!thread_heap)
        thread_heap = (struct heap_front *)&no_heap;
}

/* The heap that this thread got before its thread-local variables were set to their first values;
 * where it has none yet, the next one that it takes is that. */
static struct heap *adopt_early(void)
{
    if (!early.heap)
        early.heap = adopt();
    return early.heap;
}

void heap_end_early(void)
{
    if (ATOMIC_LOAD_RELAXED(&early.thread) != identity_self())
        return;
    if (early.heap && !heap_of_thread())
        heap_leave(heap_enter());
    ATOMIC_STORE_RELAXED(&early.thread, 0);
}

/* ---- Entry to the slow paths ----------------------------------------------------------------- */

/* The first slow call of a thread, or one after its heap was released. The heap is in place before
 * the exit hook is set, so that an allocation inside pthread_setspecific would find it; for a key
 * below 32, which ours is as one of the first in the program, there is none. */
static struct heap *enter_first(void)
{
    bool keep = !has_exited && !POLICY(fallback);
    bool is_early = ATOMIC_LOAD_RELAXED(&early.thread) == identity_self();
    struct heap *heap = NULL;
    if (init_once())
        heap = UNLIKELY(is_early && keep) ? adopt_early() : adopt();
    if (heap && keep) {
        keep_heap(heap);
        if (registry.has_key)
            pthread_setspecific(registry.key, heap);
    }
    return heap;
}

/* `idle`: the thread was found to make no calls. */
static void look_after_purge(struct heap *heap, bool idle)
{
    uint64_t now_ms = os_clock_ms();
    if (heap->parked_ms != now_ms) {
        heap->parked_ms = now_ms;
        heap->parks_left = idle || purge_armed() ? PARKS_MAX : PARKS_AMONG_OTHERS;
        tick_begin(now_ms);
    }
    tick_work(now_ms);
}

/* The thread's heap is one of its parent process: from now on it is this process's. The flag says
 * that other heaps of the parent are not the thread's. */
static SLOW_PATH void enter_process(struct heap *heap)
{
    lock_acquire(&registry.lock);
    count_owned(1);
    lock_release(&registry.lock);
    own(heap);
    ATOMIC_STORE_RELEASE(&registry.process, (uint32_t)(identity_self() >> 32));
}

struct heap *heap_enter(void)
{
    int cancel_type;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type);
    struct heap *heap = heap_of_thread();
    if (UNLIKELY(!heap))
        heap = enter_first();
    if (UNLIKELY(!heap)) {
        pthread_setcanceltype(cancel_type, NULL);
        return NULL;
    }
    /* Before the gate, so that a signal handler in between leaves it to this call to leave. */
    bool outermost = heap->depth++ == 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    idle_enter(heap);
    bool idle = idle_take_back(heap);
    if (heap == own_heap)
        thread_heap = &heap->area->front;
    if (outermost) {
        heap->cancel_type = cancel_type;
        if (UNLIKELY(!identity_is_local(ATOMIC_LOAD_RELAXED(&heap->owner))))
            enter_process(heap);
        if (UNLIKELY(heap->area->front.classes != class_map_newest()->classes))
            idle_open_front(heap);
        bool periodic = ++heap->slow_calls >= MAINTENANCE_PERIOD;
        if (periodic) {
            heap->slow_calls = 0;
            heap_maintain(heap);
        }
        if (periodic || purge_matters())
            look_after_purge(heap, idle);
    }
    return heap;
}

void heap_leave(struct heap *heap)
{
    if (heap->depth > 1) {
        heap->depth--;
        return;
    }
    int cancel_type = heap->cancel_type;
    bool borrowed = heap != own_heap;
    /* While the heap is in use: a handler that comes now leaves it parked. */
    if (UNLIKELY(is_to_park(heap)) && !borrowed)
        park(heap);
    idle_leave(heap);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    heap->depth = 0;
    if (UNLIKELY(borrowed))
        give_back(heap);
    pthread_setcanceltype(cancel_type, NULL);
}

void heap_check_pool(void)
{
    unsigned warm = 0, free = 0;
    lock_acquire(&registry.lock);
    for (struct heap *heap = registry.warm; heap; heap = heap->next_free, warm++)
        ASSERT(!heap->owner);
    for (struct heap *heap = registry.free; heap; heap = heap->next_free, free++)
        ASSERT(!heap->owner && !heap->bare);
    for (struct heap *heap = registry.bare; heap; heap = heap->next_free)
        ASSERT(!heap->owner && heap->bare);
    ASSERT(warm == registry.warm_count && free == registry.free_count);
    ASSERT((size_t)(registry.unused_end - registry.unused) <= chunk_bytes);
    lock_release(&registry.lock);
}

/* ---- For statistics and fork ----------------------------------------------------------------- */

struct heap *heap_first(void)
{
    return ATOMIC_LOAD_ACQUIRE(&registry.all);
}

bool heap_in_use(const struct heap *heap)
{
    uint64_t owner = ATOMIC_LOAD_RELAXED(&heap->owner);
    return owner && (identity_is_local(owner) || heap == heap_of_thread());
}

unsigned heap_crowd(void)
{
    return ATOMIC_LOAD_RELAXED(&registry.crowd);
}

bool heap_is_only_one(void)
{
    return ATOMIC_LOAD_RELAXED(&registry.owned) <= 1;
}

struct lock *heap_registry_lock(void)
{
    return &registry.lock;
}
