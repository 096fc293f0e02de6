/* Processes end by exit, quick_exit or a return from main while other threads are busy with blocks
 * of every size. They must end well, and soon.
 *
 * usage: exit_beside_busy THREADS PROCESSES
 */
#include "hostile.h"

static void *busy(void *number)
{
    enum { BLOCKS = 500 };
    static __thread char *blocks[BLOCKS];
    random_state += (uintptr_t)number;
    for (;;) {
        size_t at = random_between(0, BLOCKS - 1), kind = random_next() % 100;
        free(blocks[at]);
        blocks[at] = allocate(random_between(1, kind < 90 ? 1000 : kind < 99 ? 40000 : 3 * MIB));
        blocks[at][0] = 1;
    }
    return NULL;
}

static void allocate_late(void)
{
    for (size_t size = 8; size < MIB; size *= 2) {
        free(allocate(size));
    }
}

static int live_and_end(size_t threads, size_t number)
{
    watch("exit beside busy threads");
    REQUIRE(atexit(allocate_late) == 0 && at_quick_exit(allocate_late) == 0);
    for (uintptr_t i = 0; i < threads; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, busy, (void *)(number * threads + i)) == 0);
    }
    sleep_ms((unsigned)(number % 4));
    if (number % 3 == 0) {
        quick_exit(0);
    }
    if (number % 3 == 1) {
        exit(0);
    }
    return 0;
}

int main(int argc, char **argv)
{
    size_t threads = argument(argc, argv, 1), processes = argument(argc, argv, 2);
    for (size_t i = 0; i < processes; i++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            return live_and_end(threads, i);
        }
        int status;
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    }
    conclude();
    return 0;
}
