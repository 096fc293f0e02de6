/* A library whose constructor starts a thread and forks. */
#include "hostile.h"

static void *allocate_some(void *unused)
{
    for (unsigned i = 0; i < 20000; i++) {
        char *block = allocate(random_between(1, 3000));
        block[0] = 1;
        free(block);
    }
    return unused;
}

__attribute__((constructor)) static void fork_early(void)
{
    pthread_t beside, inside;
    watch("fork in a constructor");
    REQUIRE(pthread_create(&beside, NULL, allocate_some, NULL) == 0);
    for (unsigned i = 0; i < 50; i++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            REQUIRE(pthread_create(&inside, NULL, allocate_some, NULL) == 0);
            allocate_some(NULL);
            REQUIRE(pthread_join(inside, NULL) == 0);
            _exit(0);
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    REQUIRE(pthread_join(beside, NULL) == 0);
    alarm(0);
}
