/* See watch.h. */
#include "api/watch.h"

#include <errno.h>

#include "thread/own.h"

bool watch_is_observed;

static void *answer(void *request)
{
    const struct trace *now = trace_now();
    if (now)
        now->answer((uint32_t)(uintptr_t)request);
    __atomic_fetch_add(&attachment.answers, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void take_request(void)
{
    uint32_t request = __atomic_exchange_n(&attachment.request, ATTACH_NOTHING, __ATOMIC_ACQUIRE);
    if (!request)
        return;
    void *argument = (void *)(uintptr_t)request; /* NOLINT(performance-no-int-to-ptr) */
    int error = own_thread_start(answer, argument);
    /* A program without threads has no dynamic linker to wait for. */
    if (error == ENOSYS)
        answer(argument);
    else if (error)
        __atomic_fetch_add(&attachment.answers, 1, __ATOMIC_RELEASE);
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
