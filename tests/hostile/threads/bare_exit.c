/* Threads that end by a bare system call, so that no destructor of theirs runs: what they held must
 * be found again, or memory grows with each of them.
 *
 * usage: bare_exit THREADS
 * figures: growth_mib   resident memory after all of them, beyond that after a tenth
 */
#include "hostile.h"

static void *end_at_once(void *unused)
{
    enum { BLOCKS = 20 };
    char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate(16 + i * 100);
        blocks[i][0] = 1;
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    syscall(SYS_exit, 0);
    return unused;
}

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1);
    double before = 0;
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        start_thread(&thread, end_at_once, NULL, 64 * KIB);
        REQUIRE(pthread_join(thread, NULL) == 0);
        if (i == count / 10) {
            before = resident_mib();
        }
    }
    figure("growth_mib", resident_mib() - before);
    conclude();
    _exit(0);
}
