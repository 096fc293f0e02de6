/* The threads of a pool use blocks of many sizes once, free them all, and wait for ever. Nothing is
 * live: some calls of another thread, and malloc_trim at the latest, must give the memory back.
 *
 * usage: idle_pool THREADS BLOCKS SIZE_MAX
 * figures: idle_mib      resident memory after the last thread came to rest
 *          later_mib     3 s later, after 300 calls of the first thread
 *          trimmed_mib   after malloc_trim
 */
#include "hostile.h"

enum { SIZES = 16, BLOCKS_MAX = 64 };

static size_t block_count, size_max;
static pthread_barrier_t ready;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void use_blocks(void)
{
    char *blocks[SIZES][BLOCKS_MAX];
    for (size_t kind = 0; kind < SIZES; kind++) {
        for (size_t i = 0; i < block_count; i++) {
            size_t size = size_max * (kind + 1) / SIZES;
            blocks[kind][i] = allocate(size);
            memset(blocks[kind][i], 1, size);
        }
    }
    for (size_t kind = 0; kind < SIZES; kind++) {
        for (size_t i = 0; i < block_count; i++) {
            free(blocks[kind][i]);
        }
    }
}

static void *use_and_wait(void *unused)
{
    pthread_mutex_lock(&one_at_a_time);
    for (int round = 0; round < 4; round++) {
        use_blocks();
    }
    pthread_mutex_unlock(&one_at_a_time);
    pthread_barrier_wait(&ready);
    pause();
    return unused;
}

int main(int argc, char **argv)
{
    size_t threads = argument(argc, argv, 1);
    block_count = argument(argc, argv, 2);
    size_max = argument(argc, argv, 3);
    REQUIRE(block_count <= BLOCKS_MAX);
    REQUIRE(pthread_barrier_init(&ready, NULL, (unsigned)threads + 1) == 0);
    for (size_t i = 0; i < threads; i++) {
        pthread_t thread;
        start_thread(&thread, use_and_wait, NULL, 64 * KIB);
    }
    pthread_barrier_wait(&ready);
    figure("idle_mib", resident_mib());
    for (size_t i = 0; i < 300; i++) {
        char *block = allocate(100 + i * 16);
        block[0] = 1;
        free(block);
        sleep_ms(10);
    }
    figure("later_mib", resident_mib());
    malloc_trim(0);
    figure("trimmed_mib", resident_mib());
    conclude();
    _exit(0);
}
