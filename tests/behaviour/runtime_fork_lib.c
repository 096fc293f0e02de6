/* A library whose constructor registers fork handlers that take its own mutex, under which it
 * allocates: the textbook use of pthread_atfork (behaviour 44). */
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock_mutex(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock_mutex(void)
{
    pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void library_start(void)
{
    pthread_atfork(lock_mutex, unlock_mutex, unlock_mutex);
}

void library_work(unsigned round);

void library_work(unsigned round)
{
    char *blocks[16];
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < 16; i++) {
        blocks[i] = malloc(3000 * (size_t)(round % 20 + 1));
        if (blocks[i] != NULL) {
            blocks[i][0] = 1;
        }
    }
    for (unsigned i = 0; i < 16; i++) {
        free(blocks[i]);
    }
    pthread_mutex_unlock(&mutex);
}
