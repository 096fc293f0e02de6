/* One thread works, and then works on beside many that have allocated once and sleep. It must not
 * pay for them: with short blocks never, with bursts of longer ones not for long.
 *
 * usage: crowd THREADS
 * figures: alone_ns         processor time for a replacement of a block, before there are others
 *          beside_ns        beside the sleepers
 *          burst_alone_ns   the same for malloc and free of a block of 4 to 8 KiB, in bursts
 *          burst_beside_ns
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

static double bursts_ns(double seconds)
{
    enum { BLOCKS = 300 };
    static char *blocks[BLOCKS];
    double start = thread_cpu_s(), end = start;
    size_t count = 0;
    for (; end < start + seconds; end = thread_cpu_s(), count += BLOCKS) {
        for (unsigned i = 0; i < BLOCKS; i++) {
            blocks[i] = allocate(random_between(4097, 8192));
            blocks[i][0] = 1;
        }
        for (unsigned i = 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
    return (end - start) / (double)count * 1e9;
}

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1);
    REQUIRE(pthread_barrier_init(&ready, NULL, (unsigned)count + 1) == 0);
    replace_ns();
    figure("alone_ns", replace_ns());
    bursts_ns(0.1);
    figure("burst_alone_ns", bursts_ns(0.2));
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        start_thread(&thread, sleeper, NULL, 64 * KIB);
    }
    pthread_barrier_wait(&ready);
    figure("beside_ns", replace_ns());
    bursts_ns(1);
    figure("burst_beside_ns", bursts_ns(0.2));
    conclude();
    _exit(0);
}
