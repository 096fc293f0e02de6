/* A child in a PID namespace of its own starts a thread that gets the very thread id that its
 * parent has outside: in the child nobody but that thread has it, so the two must not be taken for
 * one. Skipped where the program may not make namespaces.
 *
 * usage: same_id clone|fork ROUNDS
 */
#include "hostile.h"

#include <sched.h>

static unsigned rounds;
static pthread_barrier_t both;

static void churn(uintptr_t id)
{
    enum { BLOCKS = 200 };
    uintptr_t *blocks[BLOCKS] = {NULL};
    random_state += id;
    for (unsigned i = 0; i < rounds; i++) {
        unsigned at = (unsigned)(random_next() % BLOCKS);
        if (blocks[at]) {
            REQUIRE(*blocks[at] == id);
            free(blocks[at]);
        }
        blocks[at] = allocate(random_between(8, 40000));
        *blocks[at] = id;
    }
    for (unsigned at = 0; at < BLOCKS; at++) {
        free(blocks[at]);
    }
}

static void *churn_beside(void *wanted_id)
{
    REQUIRE(syscall(SYS_gettid) == (long)wanted_id);
    pthread_barrier_wait(&both);
    churn(1);
    return NULL;
}

static void set_last_id(long id)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%ld", id);
    int file = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, (size_t)length) != length) {
        skip("the system does not let thread ids be chosen");
    }
    close(file);
}

static void child_main(long id_of_parent)
{
    pthread_t thread;
    watch("two threads, one of which has the id of the other's parent");
    REQUIRE(syscall(SYS_gettid) == 1);
    REQUIRE(pthread_barrier_init(&both, NULL, 2) == 0);
    set_last_id(id_of_parent - 1);
    REQUIRE(pthread_create(&thread, NULL, churn_beside, (void *)id_of_parent) == 0);
    pthread_barrier_wait(&both);
    churn(2);
    REQUIRE(pthread_join(thread, NULL) == 0);
    _exit(0);
}

int main(int argc, char **argv)
{
    rounds = (unsigned)argument(argc, argv, 2);
    long id = syscall(SYS_gettid);
    free(allocate(40));
    bool bare = strcmp(argv[1], "clone") == 0;
    if (!bare && unshare(CLONE_NEWPID) != 0) {
        skip("no PID namespace can be made here");
    }
    pid_t child = bare ? (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_NEWPID, 0, 0, 0, 0) : fork();
    if (child < 0) {
        skip("no PID namespace can be made here");
    }
    if (child == 0) {
        child_main(id);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        _exit(SKIPPED);
    }
    REQUIRE(status == 0);
    conclude();
    return 0;
}
