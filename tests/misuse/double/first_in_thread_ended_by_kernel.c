/* The first free was made by a thread that ended by a bare system call, so that its cache was never
 * given back. Only a new thread that takes the cache over, or many of them, would find it.
 *
 * tiny: not caught
 * mid, large, big: at once
 *     hakmem: free(): double free of BAD
 * hardened tiny: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

#include <sys/syscall.h>
#include <unistd.h>

static sem_t freed;

static void *free_and_vanish(void *block)
{
    free(block);
    sem_post(&freed);
    syscall(SYS_exit, 0);
    return NULL;
}

void misuse(size_t size)
{
    pthread_t thread;
    sem_init(&freed, 0, 0);
    void *block = new_victim(size);
    if (pthread_create(&thread, NULL, free_and_vanish, block) != 0)
        broken("no thread");
    sem_wait(&freed);
    free_wrongly(block);
}
