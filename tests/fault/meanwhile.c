/* What another thread may do wrong while a system call is under way: a second free of a block whose
 * page is just being purged, so that it is not among the free ones, is noticed when the page comes
 * back (behaviour 24).
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <hakmem/hakmem.h>

#include "os/fault.h"
#include "runtime_support.h"
#include "slab/bin.h"

enum { BLOCKS = 4096, BLOCK_BYTES = 1024, KEPT_EVERY = 64 };

static void *block[BLOCKS];
static void *victim;
static sem_t found, freed;

static void *free_again(void *argument)
{
    (void)argument;
    while (sem_wait(&found) != 0) {
    }
    free(victim);
    hakmem_purge(); /* sends it to its slab */
    sem_post(&freed);
    return NULL;
}

/* Before each system call: looks for a freed block that its slab, if it is not gone as a whole, has
 * lent to the purge. */
static bool watch(enum os_call call)
{
    for (unsigned i = 0; call == OS_MADVISE && i < BLOCKS; i++)
        if (i % KEPT_EVERY && slab_lookup(block[i]) && !bin_block_is_free(block[i], "free")) {
            fault_hook = NULL;
            victim = block[i];
            sem_post(&found);
            while (sem_wait(&freed) != 0) {
            }
            break;
        }
    return false;
}

static void purge_with_a_double_free(void)
{
    pthread_t other;
    REQUIRE(sem_init(&found, 0, 0) == 0 && sem_init(&freed, 0, 0) == 0);
    REQUIRE(pthread_create(&other, NULL, free_again, NULL) == 0);
    for (unsigned i = 0; i < BLOCKS; i++)
        REQUIRE(block[i] = malloc(BLOCK_BYTES));
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % KEPT_EVERY)
            free(block[i]);
    fault_hook = watch;
    hakmem_purge();
    say("nobody noticed\n");
    _exit(1);
}

int main(void)
{
    int ends[2], status;
    char message[400] = "";
    watchdog(HANG_SECONDS, "the double free");
    REQUIRE(pipe(ends) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        REQUIRE(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
        purge_with_a_double_free();
    }
    REQUIRE(close(ends[1]) == 0);
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(read(ends[0], message, sizeof message - 1) > 0);
    fputs(message, stderr);
    REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    REQUIRE(strncmp(message, "hakmem: free(): double free of 0x", 33) == 0);
    return 0;
}
