/* See attach.h. */
#include "trace/attach.h"

#include <pthread.h>

#include "os/os.h"

/* A statically linked program may have no threads, and no dynamic linker to wait for. */
#pragma weak pthread_create
#pragma weak pthread_detach

struct attach attachment;

static void *answer(void *request)
{
    attachment.answer((uint32_t)(uintptr_t)request);
    __atomic_fetch_add(&attachment.answers, 1, __ATOMIC_RELEASE);
    return NULL;
}

void attach_take(void)
{
    pthread_t thread;
    uint32_t request = __atomic_exchange_n(&attachment.request, ATTACH_NOTHING, __ATOMIC_ACQUIRE);
    if (!request || !attachment.answer)
        return;
    void *argument = (void *)(uintptr_t)request; /* NOLINT(performance-no-int-to-ptr) */
    /* The program's handlers are not to run there. */
    uint64_t blocked = os_block_signals();
    if (!pthread_create || !pthread_detach)
        answer(argument);
    else if (pthread_create(&thread, NULL, answer, argument) == 0)
        pthread_detach(thread);
    else
        __atomic_fetch_add(&attachment.answers, 1, __ATOMIC_RELEASE);
    os_restore_signals(blocked);
}
