/* Asynchronous cancellation, put off while a lock is held, a file is open or signals are blocked:
 * a thread that ended there would leave them so. Any thread; not a cancellation point.
 */
#ifndef OS_CANCEL_H
#define OS_CANCEL_H

#include <pthread.h>

/* Returns the type of cancellation that the thread had. */
static inline int cancel_put_off(void)
{
    int type;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    return type;
}

static inline void cancel_restore(int type)
{
    pthread_setcanceltype(type, NULL);
}

#endif
