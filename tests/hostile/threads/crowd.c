/* One thread works, and then works on beside many that have allocated once and sleep. It must not
 * pay for them.
 *
 * usage: crowd THREADS
 * figures: alone_ns    processor time for a replacement of a block, before there are others
 *          beside_ns   beside the sleepers
 */
#include "hostile.h"

static pthread_barrier_t ready;

static void *sleeper(void *unused)
{
    free(allocate(40));
    pthread_barrier_wait(&ready);
    pause();
    return unused;
}

static double replace_ns(void)
{
    enum { BLOCKS = 2000, ROUNDS = 2000000 };
    static char *blocks[BLOCKS];
    double start = thread_cpu_s();
    for (unsigned i = 0; i < ROUNDS; i++) {
        size_t at = random_between(0, BLOCKS - 1);
        free(blocks[at]);
        blocks[at] = allocate(random_between(16, 400));
        blocks[at][0] = 1;
    }
    return (thread_cpu_s() - start) / ROUNDS * 1e9;
}

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1);
    REQUIRE(pthread_barrier_init(&ready, NULL, (unsigned)count + 1) == 0);
    replace_ns();
    figure("alone_ns", replace_ns());
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        start_thread(&thread, sleeper, NULL, 64 * KIB);
    }
    pthread_barrier_wait(&ready);
    figure("beside_ns", replace_ns());
    conclude();
    _exit(0);
}
