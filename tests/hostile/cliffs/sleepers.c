/* Many threads work for a moment, free all and sleep. What they keep must be little.
 *
 * usage: sleepers THREADS BLOCKS LOW HIGH
 * figures: asleep_mib   resident memory while all sleep
 */
#include "hostile.h"

static size_t block_count, low, high;
static pthread_barrier_t ready;

static void *work_and_sleep(void *number)
{
    random_state ^= (uintptr_t)number * 977;
    char **blocks = allocate(block_count * sizeof *blocks);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < block_count; i++) {
            size_t size = random_between(low, high);
            blocks[i] = allocate(size);
            memset(blocks[i], 1, size);
        }
        for (size_t i = 0; i < block_count; i++) {
            free(blocks[i]);
        }
    }
    free(blocks);
    pthread_barrier_wait(&ready);
    pause();
    return NULL;
}

int main(int argc, char **argv)
{
    size_t threads = argument(argc, argv, 1);
    block_count = argument(argc, argv, 2);
    low = argument(argc, argv, 3);
    high = argument(argc, argv, 4);
    REQUIRE(pthread_barrier_init(&ready, NULL, (unsigned)threads + 1) == 0);
    for (uintptr_t i = 1; i <= threads; i++) {
        pthread_t thread;
        start_thread(&thread, work_and_sleep, (void *)i, 64 * KIB);
    }
    pthread_barrier_wait(&ready);
    sleep_ms(10);
    free(allocate(1000));
    figure("asleep_mib", resident_mib());
    conclude();
    _exit(0);
}
