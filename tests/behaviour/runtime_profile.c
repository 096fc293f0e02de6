/* Holds blocks of two functions, and allocates while a signal on which hakmem writes its profile
 * comes again and again.
 *
 * usage: runtime_profile SIGNALS [FILE]: FILE is written by hakmem_profile_write at the end
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hakmem/hakmem.h"

enum { BLOCKS = 60000, KEPT = 1000, FREED = 500, DELAY_US = 2000 };

static void *kept[BLOCKS];

__attribute__((noinline)) void *allocate_kept(void)
{
    char *block = malloc(KEPT);
    memset(block, 1, KEPT);
    return block;
}

__attribute__((noinline)) void *allocate_freed(void)
{
    char *block = malloc(FREED);
    memset(block, 1, FREED);
    return block;
}

static void *send_signals(void *count)
{
    for (int i = *(int *)count; i > 0; i--) {
        kill(getpid(), SIGUSR1);
        usleep(DELAY_US);
    }
    *(int *)count = 0;
    return NULL;
}

int main(int argc, char **argv)
{
    volatile int signals = argc > 1 ? atoi(argv[1]) : 0;
    pthread_t sender;
    for (int i = 0; i < BLOCKS; i++) {
        kept[i] = allocate_kept();
        free(allocate_freed());
    }
    if (signals && pthread_create(&sender, NULL, send_signals, (void *)&signals) != 0)
        return 1;
    for (unsigned i = 0; __atomic_load_n(&signals, __ATOMIC_RELAXED); i++) {
        void *block = malloc(1 + i * 61 % 9000);
        free(kept[i % BLOCKS]);
        kept[i % BLOCKS] = allocate_kept();
        free(block);
    }
    if (argc > 2)
        printf("status %d\n", hakmem_profile_write(argv[2]));
    return 0;
}
