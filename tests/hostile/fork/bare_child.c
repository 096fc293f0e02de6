/* A child is made without fork's handlers, by clone, clone3 or _Fork. It allocates, starts threads
 * and lets them end, as does a child of its own made in the same way: no block may be handed out
 * twice, and nobody may hang. Idle threads that the parent has, and the child has not, change
 * nothing about that.
 *
 * usage: bare_child clone|clone3|_Fork IDLE_THREADS ROUNDS
 */
#include "hostile.h"

#include <linux/sched.h>

static const char *way;
static unsigned rounds;
static pthread_barrier_t both;

static pid_t make_child(void)
{
    if (strcmp(way, "clone") == 0) {
        return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    }
    if (strcmp(way, "clone3") == 0) {
        struct clone_args arguments = {.exit_signal = SIGCHLD};
        return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    }
    return _Fork();
}

/* Owns up to 64 blocks at a time and sees to it that nobody else writes to them. */
static void churn(uintptr_t id)
{
    enum { BLOCKS = 64 };
    uintptr_t *blocks[BLOCKS] = {NULL};
    random_state += id;
    for (unsigned i = 0; i < rounds; i++) {
        unsigned at = (unsigned)(random_next() % BLOCKS);
        if (blocks[at]) {
            REQUIRE(blocks[at][0] == id && blocks[at][4] == id * 1000 + at);
            free(blocks[at]);
        }
        blocks[at] = allocate(40);
        blocks[at][0] = id;
        blocks[at][4] = id * 1000 + at;
    }
    for (unsigned at = 0; at < BLOCKS; at++) {
        free(blocks[at]);
    }
}

static void *churn_beside(void *id)
{
    free(allocate(40));
    pthread_barrier_wait(&both);
    churn((uintptr_t)id);
    return NULL;
}

static void churn_twice(void)
{
    pthread_t thread;
    REQUIRE(pthread_barrier_init(&both, NULL, 2) == 0);
    for (uintptr_t id = 1; id <= 3; id++) {
        REQUIRE(pthread_create(&thread, NULL, churn_beside, (void *)id) == 0);
        pthread_barrier_wait(&both);
        churn(9);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
}

static void await(pid_t child)
{
    int status;
    REQUIRE(child > 0);
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

static void *idle(void *unused)
{
    free(allocate(40));
    pthread_barrier_wait(&both);
    pause();
    return unused;
}

int main(int argc, char **argv)
{
    way = argv[1];
    size_t idle_threads = argument(argc, argv, 2);
    rounds = (unsigned)argument(argc, argv, 3);
    free(allocate(40));
    REQUIRE(pthread_barrier_init(&both, NULL, (unsigned)idle_threads + 1) == 0);
    for (size_t i = 0; i < idle_threads; i++) {
        pthread_t thread;
        start_thread(&thread, idle, NULL, 64 * KIB);
    }
    pthread_barrier_wait(&both);
    pid_t child = make_child();
    if (child < 0 && errno == ENOSYS) {
        skip("the system has no clone3");
    }
    if (child == 0) {
        watch("a bare child");
        churn_twice();
        pid_t grandchild = make_child();
        if (grandchild == 0) {
            churn_twice();
            _exit(0);
        }
        await(grandchild);
        _exit(0);
    }
    await(child);
    churn(5);
    conclude();
    _exit(0);
}
