/* Threads with the smallest stack that there may be get the signal on which hakmem writes its
 * reports, all of them at once; each finds errno as it was, and goes on.
 *
 * usage: runtime_dump THREADS
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>

#include "runtime_support.h"

/* musl would make threads with 2 KiB, which no handler can run on. */
enum { STACK_BYTES_MIN = 16384 };
enum { THREADS_MAX = 64, SIGNAL = SIGUSR1, ERROR = 4711 };

static pthread_barrier_t sent;

static void *take_signal(void *unused)
{
    sigset_t set;
    (void)unused;
    void *volatile block = malloc(1000);
    sigemptyset(&set);
    sigaddset(&set, SIGNAL);
    pthread_barrier_wait(&sent); /* all live */
    pthread_barrier_wait(&sent); /* all have it pending */
    errno = ERROR;
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    REQUIRE(errno == ERROR);
    free(block);
    return NULL;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t threads[THREADS_MAX];
    pthread_attr_t attributes;
    sigset_t set;
    size_t least = (size_t)PTHREAD_STACK_MIN;
    REQUIRE(count > 0 && count <= THREADS_MAX);
    sigemptyset(&set);
    sigaddset(&set, SIGNAL);
    REQUIRE(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    REQUIRE(pthread_barrier_init(&sent, NULL, (unsigned)count + 1) == 0);
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(
        pthread_attr_setstacksize(&attributes, least < STACK_BYTES_MIN ? STACK_BYTES_MIN : least) ==
        0);
    for (int i = 0; i < count; i++)
        REQUIRE(pthread_create(&threads[i], &attributes, take_signal, NULL) == 0);
    pthread_barrier_wait(&sent);
    for (int i = 0; i < count; i++)
        REQUIRE(pthread_kill(threads[i], SIGNAL) == 0);
    pthread_barrier_wait(&sent);
    for (int i = 0; i < count; i++)
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    return 0;
}
