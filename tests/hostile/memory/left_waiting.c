/* Threads make and free blocks of many lengths, one after the other, and wait for ever. Then the
 * first thread wants the memory, under a limit that holds what the program has in use, but not much
 * more: no cache of a thread that sleeps may stand in its way.
 *
 * usage: left_waiting none|addresses|data LIMIT_MIB THREADS LOW HIGH LEFT_MIB SIZE WANTED_MIB
 *
 * Each of THREADS has LEFT_MIB of blocks of LOW to HIGH bytes; the first thread asks for WANTED_MIB
 * in blocks of SIZE, twice. The limits are those of handed_over.
 *
 * figures: got_mib, later_mib   what it got, at once and in the second round
 */
#include "hostile.h"

enum { BLOCKS_MAX = 1 << 16 };

static size_t low, high, left_bytes;
static char *blocks[BLOCKS_MAX];
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t ready;

static void *use_and_wait(void *unused)
{
    size_t count = 0, bytes = 0;
    pthread_mutex_lock(&one_at_a_time);
    while (bytes < left_bytes && count < BLOCKS_MAX) {
        size_t size = random_between(low, high);
        blocks[count++] = memset(allocate(size), 1, size);
        bytes += size;
    }
    while (count > 0) {
        free(blocks[--count]);
    }
    pthread_mutex_unlock(&one_at_a_time);
    pthread_barrier_wait(&ready);
    pause();
    return unused;
}

static double take(size_t size, size_t wanted)
{
    size_t count = 0;
    while (count * size < wanted && count < BLOCKS_MAX) {
        char *block = malloc(size);
        if (!block) {
            break;
        }
        blocks[count++] = memset(block, 1, size);
    }
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
    return (double)(count * size) / (double)MIB;
}

int main(int argc, char **argv)
{
    size_t threads = argument(argc, argv, 3), size = argument(argc, argv, 7);
    low = argument(argc, argv, 4);
    high = argument(argc, argv, 5);
    left_bytes = argument(argc, argv, 6) * MIB;
    watch("memory that sleeping threads have left");
    limit_resource(argv[1], argument(argc, argv, 2));
    REQUIRE(pthread_barrier_init(&ready, NULL, (unsigned)threads + 1) == 0);
    for (size_t i = 0; i < threads; i++) {
        pthread_t thread;
        start_thread(&thread, use_and_wait, NULL, 64 * KIB);
    }
    pthread_barrier_wait(&ready);
    figure("got_mib", take(size, argument(argc, argv, 8) * MIB));
    figure("later_mib", take(size, argument(argc, argv, 8) * MIB));
    conclude();
    return 0;
}
