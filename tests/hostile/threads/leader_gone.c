/* The first thread ends, the process lives on: another allocates, forks, starts threads. It must
 * neither lose what the first thread held nor take it twice.
 *
 * usage: leader_gone
 */
#include "hostile.h"

enum { BLOCKS = 1000 };

static uintptr_t *of_leader[BLOCKS];
static pthread_t leader;

static void *churn(void *id)
{
    uintptr_t *blocks[BLOCKS] = {NULL};
    random_state += (uintptr_t)id;
    for (unsigned i = 0; i < 300000; i++) {
        size_t at = random_between(0, BLOCKS - 1);
        REQUIRE(!blocks[at] || *blocks[at] == (uintptr_t)id);
        free(blocks[at]);
        blocks[at] = allocate(random_between(8, 3000));
        *blocks[at] = (uintptr_t)id;
    }
    for (size_t at = 0; at < BLOCKS; at++) {
        free(blocks[at]);
    }
    return NULL;
}

static void churn_twice(void)
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, churn, (void *)1) == 0);
    churn((void *)2);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

static void *heir(void *unused)
{
    REQUIRE(pthread_join(leader, NULL) == 0);
    watch("a process without its first thread");
    churn_twice();
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        churn_twice();
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    for (size_t i = 0; i < BLOCKS; i++) {
        REQUIRE(*of_leader[i] == i);
        free(of_leader[i]);
    }
    conclude();
    _exit(0);
    return unused;
}

int main(void)
{
    pthread_t thread;
    leader = pthread_self();
    for (size_t i = 0; i < BLOCKS; i++) {
        of_leader[i] = allocate(random_between(8, 3000));
        *of_leader[i] = i;
    }
    REQUIRE(pthread_create(&thread, NULL, heir, NULL) == 0);
    pthread_exit(NULL);
}
