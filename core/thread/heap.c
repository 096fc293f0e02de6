/* See heap.h. */
#include "thread/heap.h"

#include <limits.h>
#include <pthread.h>

#include "base/assert.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "base/tuning.h"
#include "hardened.h"
#include "os/cancel.h"
#include "os/os.h"
#include "os/syscall.h"
#include "scope/scope.h"
#include "span/page_heap.h"
#include "thread/fork.h"
#include "thread/idle.h"
#include "thread/registry.h"
#include "trace/trace.h"

/* Its class map is empty, and starts where no address is, so only class 0 is ever looked up. */
static const struct heap_front no_heap = {
    .classes_base = (uintptr_t)1 << 63, .top = {(void **)&no_heap}};

__thread struct heap_front *thread_heap = (struct heap_front *)&no_heap;

/* The thread's heap, also while it is parked: then hit paths do not see it, so that the next call
 * takes a slow path and looks after the purge. */
static __thread struct heap *own_heap;

/* How often thread_exits ran in the thread, and, from EXIT_ROUNDS on, how many calls borrowed a
 * heap since it has released its own. */
static __thread uint8_t exits;

/* Calls thread_exits; const after initialisation. Without a key (a program may use them up) the
 * registry finds heaps of exited threads. */
#define NO_KEY ((pthread_key_t)-1)
static pthread_key_t exit_key = NO_KEY;

/* See heap_start_early. */
static struct {
    uint64_t thread;   /* atomic relaxed, any thread: its identity, 0 when it is over */
    struct heap *heap; /* that thread only: its heap */
} early_calls;

/* In this round of its destructors a thread releases its heap: the last but one. */
enum { EXIT_ROUNDS = PTHREAD_DESTRUCTOR_ITERATIONS - 1 };

/* Any other value is the id of the thread that initialises. */
#define FRESH ((uint32_t)0)
#define READY UINT32_MAX

static uint32_t init_state; /* atomic: release when ready pairs with acquire */

/* ---- The thread's own heap ------------------------------------------------------------------- */

struct heap *heap_of_thread(void)
{
    return own_heap;
}

void heap_begin_bare_thread(void)
{
    thread_heap = (struct heap_front *)&no_heap;
}

/* Makes the heap the thread's own. */
static void keep_heap(struct heap *heap)
{
    idle_enter(heap);
    ATOMIC_STORE_RELAXED(&heap->state, HEAP_OPEN);
    idle_leave(heap);
    own_heap = heap;
    thread_heap = &heap->area->front;
    if (trace_now())
        trace_now()->thread_starts(heap);
}

/* In a child, makes the heap of the thread that forked one of this process. */
static void enter_process(struct heap *heap)
{
    if (UNLIKELY(!identity_is_local(ATOMIC_LOAD_RELAXED(&heap->owner))))
        registry_enter_process(heap);
}

/* Takes the heap from the thread, which may have none, and undoes closing and draining by others.
 */
static struct heap *lose_heap(void)
{
    struct heap *heap = own_heap;
    thread_heap = (struct heap_front *)&no_heap;
    own_heap = NULL;
    if (heap) {
        if (trace_now())
            trace_now()->thread_ends(heap);
        /* Before the heap is one of this process: in a child its gate may be a lost thread's, and
         * the thread may have had hits alone. */
        idle_disown(heap);
        enter_process(heap);
    }
    return heap;
}

/* ---- Start and end --------------------------------------------------------------------------- */

/* Runs in a round of the thread's destructors, of which most come later: the heap is kept for them
 * until the next round. Not until the last one, since the thread's first call of all may have come
 * from a destructor of the first. After that each call borrows a heap, or, if they are many, the
 * thread keeps one again, which it may leave behind. */
static void thread_exits(void *heap)
{
    if (SCOPES)
        scope_thread_ends();
    bool again = exits + 1 < EXIT_ROUNDS && pthread_setspecific(exit_key, heap) == 0;
    exits = again ? exits + 1 : EXIT_ROUNDS;
    if (!again)
        heap_forget();
}

static bool initialise(void)
{
    hardened_start();
    if (!page_heap_init())
        return false;
    fork_start();
    registry_start();
    return true;
}

/* Waits a moment for the thread that initialises; false: it has ended, with success or without. */
static bool await_initialisation(void)
{
    for (int i = 0; i < AWAIT_ROUNDS; i++) {
        uint32_t seen = ATOMIC_LOAD_RELAXED(&init_state); /* init_once acquires it */
        if (seen == READY || seen == FRESH)
            return false;
        cpu_relax();
    }
    return true;
}

/* Initialises the allocator, once; false: the system has no memory. */
static bool init_once(void)
{
    while (ATOMIC_LOAD_ACQUIRE(&init_state) != READY) {
        /* Each time: in a child of fork, identity_self finds that the initialising thread does not
         * exist. */
        uint32_t fresh = FRESH, self = identity_thread(identity_self());
        if (__atomic_compare_exchange_n(
                &init_state, &fresh, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            bool ready = initialise();
            ATOMIC_STORE_RELEASE(&init_state, ready ? READY : FRESH);
            /* Another library's may call malloc. */
            if (ready)
                (void)pthread_key_create(&exit_key, thread_exits);
            return ready;
        }
        while (await_initialisation() && identity_thread(identity_self()) == self)
            continue;
    }
    return true;
}

void heap_forget(void)
{
    hardened_leave_heap();
    struct heap *heap = lose_heap();
    if (heap)
        registry_give_back(heap);
}

void heap_set_aside(void (*call)(void))
{
    struct heap_front *front = thread_heap;
    struct heap *own = own_heap;
    uint8_t before = exits;
    struct scope_entry *entered = SCOPES ? scope_entered : NULL;
    thread_heap = (struct heap_front *)&no_heap;
    own_heap = NULL;
    exits = EXIT_ROUNDS;
    if (SCOPES)
        scope_entered = NULL;
    call();
    if (SCOPES)
        scope_entered = entered;
    /* After many allocations, the thread has got one. */
    struct heap *other = lose_heap();
    if (other)
        registry_give_back(other);
    thread_heap = front;
    own_heap = own;
    exits = before;
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
    registry_begin_process();
}

/* ---- Early calls ----------------------------------------------------------------------------- */

void heap_start_early(void)
{
    os_start();
    ATOMIC_STORE_RELAXED(&early_calls.thread, identity_self());
    if (!thread_heap)
        thread_heap = (struct heap_front *)&no_heap;
}

/* The heap that this thread took before its thread-local variables got their first values; if it
 * has none yet, takes one. */
static struct heap *adopt_early(void)
{
    if (!early_calls.heap)
        early_calls.heap = registry_adopt();
    return early_calls.heap;
}

void heap_end_early(void)
{
    if (ATOMIC_LOAD_RELAXED(&early_calls.thread) != identity_self())
        return;
    if (early_calls.heap && !heap_of_thread())
        heap_leave(heap_enter());
    ATOMIC_STORE_RELAXED(&early_calls.thread, 0);
}

/* ---- Entry to the slow paths ----------------------------------------------------------------- */

/* The first slow call of a thread, or one after its heap was released. The heap is in place before
 * the exit hook is set, so that an allocation inside pthread_setspecific would find it; for keys
 * below 32, as ours is mostly, there is none. */
static struct heap *enter_first(void)
{
    bool keep = (exits < EXIT_ROUNDS || exits >= EXIT_ROUNDS + BORROWS_MAX) && !POLICY(fallback);
    exits += !keep;
    bool is_early = ATOMIC_LOAD_RELAXED(&early_calls.thread) == identity_self();
    bool ready = init_once();
    struct heap *heap = own_heap; /* of a call inside init_once, or NULL */
    if (ready && !heap) {
        heap = UNLIKELY(is_early && keep) ? adopt_early() : registry_adopt();
        if (heap && keep)
            keep_heap(heap);
    }
    if (heap && keep && exit_key != NO_KEY)
        pthread_setspecific(exit_key, heap);
    return heap;
}

struct heap *heap_enter(void)
{
    int cancel_type = cancel_put_off();
    struct heap *heap = heap_of_thread();
    if (UNLIKELY(!heap))
        heap = enter_first();
    if (UNLIKELY(!heap)) {
        cancel_restore(cancel_type);
        return NULL;
    }
    /* Before the gate, so that a signal handler in between does not leave the heap for this call.
     */
    bool outermost = heap->depth++ == 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    idle_enter(heap);
    bool taken = heap->state == HEAP_CLOSED || heap->drained;
    idle_take_back(heap);
    if (heap == own_heap)
        thread_heap = &heap->area->front;
    if (outermost) {
        heap->cancel_type = cancel_type;
        enter_process(heap);
        if (UNLIKELY(heap->area->front.classes != class_map_newest()->classes))
            idle_open_front(heap);
        /* Others were at the heap, since a limit is near: no magazine may hold long blocks. */
        bool periodic = ++heap->slow_calls >= MAINTENANCE_PERIOD || (taken && pressure_is_near());
        if (periodic) {
            heap->slow_calls = 0;
            heap_maintain(heap);
        }
        if (periodic || idle_matters())
            idle_look_after_purge(heap);
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
    /* Before the heap is left: a handler that comes now leaves it parked. */
    if (!borrowed && UNLIKELY(idle_park(heap)))
        thread_heap = (struct heap_front *)&no_heap;
    idle_leave(heap);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    heap->depth = 0;
    if (UNLIKELY(borrowed))
        registry_give_back(heap);
    cancel_restore(cancel_type);
}
