/* Two threads free the same block at the same time; a hundred processes in turn make the mistake.
 *
 * tiny, mid, large: at once or at drain
 *     hakmem: free(): double free of BAD
 * big: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 100, SPINS = 10000 };

static atomic_int ready;

static void *free_together(void *block)
{
    /* Neither shall be held up by its first call. */
    free(need(malloc(1)));
    atomic_fetch_add(&ready, 1);
    /* Where others use the processors as well, the other thread may wait for this one's. */
    for (int i = 0; atomic_load(&ready) < 2; i++)
        if (i > SPINS)
            sched_yield();
    free(block);
    return NULL;
}

static void race(void *block)
{
    pthread_t other;
    if (pthread_create(&other, NULL, free_together, block) != 0)
        broken("no thread");
    free_together(block);
    pthread_join(other, NULL);
    survived();
    exit(0);
}

void misuse(size_t size)
{
    int status = 0;
    void *block = new_victim(size);
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        if (child == 0 && i < ROUNDS - 1) {
            /* The runner reads the words of the last one. */
            int nowhere = open("/dev/null", O_WRONLY);
            dup2(nowhere, STDOUT_FILENO);
            dup2(nowhere, STDERR_FILENO);
        }
        if (child == 0)
            race(block);
        if (child < 0 || waitpid(child, &status, 0) != child)
            broken("no child");
        if (!WIFSIGNALED(status))
            return;
    }
    raise(WTERMSIG(status));
}
