/* See watch.h. */
#include "api/watch.h"

#include <errno.h>
#include <pthread.h>

#include "os/os.h"
#include "os/thread.h"
#include "reclaim/engine.h"
#include "thread/fork.h"

/* A statically linked program may lack threads, and has no dynamic linker to wait for. */
#pragma weak pthread_create
#pragma weak pthread_detach

bool watch_is_observed;

static void *answer(void *request)
{
    const struct trace *now = trace_now();
    size_t bytes = attachment.give_bytes;
    if ((uintptr_t)request != ATTACH_TRIM) {
        if (now)
            now->answer((uint32_t)(uintptr_t)request);
    } else if (bytes == SIZE_MAX) {
        reclaim_everything();
    } else {
        engine_give(GIVER_HEAPS, bytes);
    }
    __atomic_fetch_add(&attachment.answers, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void take_request(void)
{
    pthread_t thread;
    uint32_t request = __atomic_exchange_n(&attachment.request, ATTACH_NOTHING, __ATOMIC_ACQUIRE);
    if (!request)
        return;
    void *argument = (void *)(uintptr_t)request; /* NOLINT(performance-no-int-to-ptr) */
    /* The program's signal handlers must not run in the new thread. */
    uint64_t blocked = os_block_signals();
    if (!pthread_create || !pthread_detach)
        answer(argument);
    else if (pthread_create(&thread, NULL, answer, argument) == 0)
        pthread_detach(thread);
    else
        __atomic_fetch_add(&attachment.answers, 1, __ATOMIC_RELEASE);
    os_restore_signals(blocked);
}

void watch_look(struct heap *heap)
{
    if (ATOMIC_LOAD_RELAXED(&attachment.request) != ATTACH_NOTHING)
        take_request();
    const struct trace *watcher = trace_now();
    bool before = ATOMIC_LOAD_RELAXED(&watch_is_observed), now = PROBE_IS_ON(otel_memory, alloc);
    /* One thread notices. */
    if (watcher && before != now &&
        __atomic_compare_exchange_n(
            &watch_is_observed, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        watcher->observe(now);
    uint8_t round = ATOMIC_LOAD_RELAXED(&trace_round);
    if (heap->drawn_round != round)
        heap_draw_due(heap, false);
    heap->drawn_round = round;
}

bool watch_answer_asleep(void)
{
    const struct heap *heap = heap_of_thread();
    int error = errno;
    if ((heap && heap->depth) || fork_holds_lock() || os_thread_is_bare())
        return false;
    heap_set_aside(take_request);
    errno = error;
    return true;
}
