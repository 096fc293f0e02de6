/* One thread fills memory with blocks that stay, alone, and then beside threads that sleep, each in
 * a shard of its own. What a slab costs must not depend on how many shards there are.
 *
 * usage: beside_shards THREADS SIZE MIB
 * figures: alone_us, beside_us   processor time for 64 KiB
 */
#include "hostile.h"

static pthread_barrier_t ready;

static void *sleep_in_a_shard(void *unused)
{
    free(allocate(100));
    pthread_barrier_wait(&ready);
    pause();
    return unused;
}

static double fill_us(size_t size, size_t mib)
{
    double began = thread_cpu_s();
    for (size_t i = 0; i < mib * MIB / size; i++) {
        memset(allocate(size), 1, 64);
    }
    return (thread_cpu_s() - began) * 1e6 / (double)(mib * MIB / (64 * KIB));
}

int main(int argc, char **argv)
{
    size_t threads = argument(argc, argv, 1), size = argument(argc, argv, 2);
    size_t mib = argument(argc, argv, 3);
    REQUIRE(pthread_barrier_init(&ready, NULL, (unsigned)threads + 1) == 0);
    double alone = fill_us(size, mib);
    for (uintptr_t i = 0; i < threads; i++) {
        pthread_t thread;
        start_thread(&thread, sleep_in_a_shard, NULL, 64 * KIB);
    }
    pthread_barrier_wait(&ready);
    double beside = fill_us(size, mib);
    figure("alone_us", alone);
    figure("beside_us", beside);
    conclude();
    _exit(0);
}
