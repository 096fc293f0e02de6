/* A library to be preloaded, whose munmap, madvise and mremap allocate under a lock of its own. */
#include "runtime_support.h"

#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long calls;

unsigned long wrapper_calls(void);
void wrapper_use(void *(*work)(void *), void *argument);

unsigned long wrapper_calls(void)
{
    return calls;
}

static void note(void)
{
    pthread_mutex_lock(&lock);
    calls++;
    free(malloc(100));
    free(malloc(3000000));
    pthread_mutex_unlock(&lock);
}

void wrapper_use(void *(*work)(void *), void *argument)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one_at_a_time);
    pthread_mutex_lock(&lock);
    work(argument);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&one_at_a_time);
    note();
}

int munmap(void *address, size_t size)
{
    note();
    return (int)syscall(SYS_munmap, address, size);
}

int madvise(void *address, size_t size, int advice)
{
    note();
    return (int)syscall(SYS_madvise, address, size, advice);
}

void *mremap(void *address, size_t before, size_t after, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    void *target = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
    va_end(list);
    note();
    return (void *)syscall(SYS_mremap, address, before, after, flags, target);
}
