/* A library as the manual of pthread_atfork describes it: its constructor registers handlers that
 * take the library's own mutex, under which it allocates. */
#include <pthread.h>
#include <stdlib.h>

#include "handlers_library.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void register_handlers(void)
{
    pthread_atfork(lock, unlock, unlock);
}

void library_work(unsigned round)
{
    enum { BLOCKS = 16 };
    char *blocks[BLOCKS];
    lock();
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(3000u * (round % 20 + 1));
        if (!blocks[i]) {
            abort();
        }
        blocks[i][0] = 1;
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    unlock();
}
