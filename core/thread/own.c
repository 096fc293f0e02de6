/* See own.h. */
#include "thread/own.h"

#include <errno.h>
#include <pthread.h>

#include "os/os.h"

/* A statically linked program may lack threads. */
#pragma weak pthread_attr_init
#pragma weak pthread_attr_setdetachstate
#pragma weak pthread_attr_setstacksize
#pragma weak pthread_create

/* Bytes. Room for the thread-local variables of all libraries; what is not touched costs nothing.
 */
enum { STACK = 256 * KIB };

int own_thread_start(void *(*run)(void *argument), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int before = errno;
    if (!pthread_create || pthread_attr_init(&attributes) != 0)
        return ENOSYS;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    uint64_t blocked = os_block_signals();
    int error = pthread_create(&thread, &attributes, run, argument);
    os_restore_signals(blocked);
    errno = before;
    return error;
}
