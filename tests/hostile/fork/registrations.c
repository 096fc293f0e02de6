/* A thread registers fork handlers while another forks. Must not hang: the list of handlers grows
 * by malloc, under a lock that fork takes between two handlers.
 *
 * usage: registrations PROCESSES HANDLERS
 */
#include "hostile.h"

#include <stdatomic.h>

static size_t handlers;
static atomic_bool registered;

static void nothing(void)
{
}

static void *register_many(void *unused)
{
    for (size_t i = 0; i < handlers; i++) {
        REQUIRE(pthread_atfork(nothing, nothing, nothing) == 0);
    }
    atomic_store(&registered, true);
    return unused;
}

/* In a process of its own, whose list of handlers is short at first. */
static void fork_beside_registrations(void)
{
    pthread_t thread;
    watch("fork beside pthread_atfork");
    REQUIRE(pthread_create(&thread, NULL, register_many, NULL) == 0);
    do {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            free(allocate(100));
            _exit(0);
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    } while (!atomic_load(&registered));
    REQUIRE(pthread_join(thread, NULL) == 0);
    _exit(0);
}

int main(int argc, char **argv)
{
    size_t processes = argument(argc, argv, 1);
    handlers = argument(argc, argv, 2);
    for (size_t i = 0; i < processes; i++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            fork_beside_registrations();
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    conclude();
    return 0;
}
