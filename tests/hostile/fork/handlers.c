/* A thread works with a library whose fork handlers take the mutex that it allocates under, while
 * the first thread forks. Must not hang: whoever holds the mutex wants memory, so the allocator's
 * locks have to be taken after it, whichever constructor ran first.
 *
 * usage: handlers FORKS
 */
#include "hostile.h"

#include "fork/handlers_library.h"

static void *work(void *unused)
{
    for (unsigned round = 0;; round++) {
        library_work(round);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    size_t forks = argument(argc, argv, 1);
    REQUIRE(pthread_create(&thread, NULL, work, NULL) == 0);
    for (size_t i = 0; i < forks; i++) {
        watch("fork beside a library with handlers");
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            library_work(1);
            _exit(0);
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    alarm(0);
    conclude();
    _exit(0);
}
