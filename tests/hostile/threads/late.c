/* Threads that were started long ago make their first call when the process has used up what it may
 * map, and has freed all of it again: what the first call takes for the thread has to be found in
 * what lies free.
 *
 * usage: late THREADS LIMIT_MIB
 *
 * figures: failed   threads of which the first malloc returned NULL
 */
#include "hostile.h"

enum { BLOCKS_MAX = 1 << 20, SIZE = 3000 };

static pthread_barrier_t begin, end;
static unsigned failed;

static void *wait_and_allocate(void *unused)
{
    pthread_barrier_wait(&begin);
    char *block = malloc(100);
    __atomic_add_fetch(&failed, block == NULL, __ATOMIC_RELAXED);
    pthread_barrier_wait(&end);
    free(block);
    return unused;
}

int main(int argc, char **argv)
{
    size_t threads = argument(argc, argv, 1), count = 0;
    static char *blocks[BLOCKS_MAX];
    watch("first calls of threads without memory");
    REQUIRE(pthread_barrier_init(&begin, NULL, (unsigned)threads + 1) == 0);
    REQUIRE(pthread_barrier_init(&end, NULL, (unsigned)threads + 1) == 0);
    for (size_t i = 0; i < threads; i++) {
        pthread_t thread;
        start_thread(&thread, wait_and_allocate, NULL, 64 * KIB);
    }
    limit_resource("addresses", argument(argc, argv, 2));
    while (count < BLOCKS_MAX && (blocks[count] = malloc(SIZE)) != NULL) {
        blocks[count++][0] = 1;
    }
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
    pthread_barrier_wait(&begin);
    pthread_barrier_wait(&end);
    figure("failed", failed);
    conclude();
    return 0;
}
