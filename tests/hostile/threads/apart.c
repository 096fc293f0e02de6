/* Threads that share nothing: each allocates bursts of blocks, writes a word to each, and frees
 * them, newest first, oldest first or in random order. Two threads on two processors must get
 * almost twice the work done; in processor time, a pair of calls must cost what it costs one thread
 * alone, and nobody must sleep for a lock.
 *
 * With `mixed` they begin with freeing blocks that the main thread has made, every other one.
 *
 * usage: apart THREADS SIZE BURST PAIRS newest|oldest|random [mixed]
 * figures: alone_ns      processor time for a pair of malloc and free, one thread
 *          together_ns   the same, THREADS threads
 *          sleeps        how often a thread slept, in 1000 pairs
 */
#include "hostile.h"

static size_t size, burst, pairs;
static char order;

/* With `mixed`, four bursts for each thread; else none. */
static void **made;
static size_t made_count, threads_count;

static void make(size_t count)
{
    made_count = 4 * burst * count;
    made = allocate(made_count * sizeof *made);
    for (size_t i = 0; i < made_count; i++) {
        made[i] = allocate(size);
        *(char *)made[i] = 1;
    }
}

static void *work(void *first)
{
    for (size_t i = (size_t)first; i < made_count; i += threads_count) {
        free(made[i]);
    }
    char **blocks = allocate(burst * sizeof *blocks);
    for (size_t done = 0; done < pairs; done += burst) {
        for (size_t i = 0; i < burst; i++) {
            blocks[i] = allocate(size);
            blocks[i][0] = 1;
        }
        for (size_t i = 0; i < burst; i++) {
            size_t at = order == 'o' ? i : burst - 1 - i;
            if (order == 'r') {
                size_t other = random_between(0, at);
                char *block = blocks[other];
                blocks[other] = blocks[at];
                blocks[at] = block;
            }
            free(blocks[at]);
        }
    }
    free(blocks);
    return NULL;
}

static double pair_ns(size_t count)
{
    pthread_t threads[64];
    REQUIRE(count <= 64);
    threads_count = count;
    double start = cpu_s();
    for (size_t i = 0; i < count; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    }
    for (size_t i = 0; i < count; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    return (cpu_s() - start) / (double)(pairs * count) * 1e9;
}

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1);
    size = argument(argc, argv, 2);
    burst = argument(argc, argv, 3);
    pairs = argument(argc, argv, 4) / burst * burst;
    order = argv[5][0];
    pair_ns(1);
    figure("alone_ns", pair_ns(1));
    if (argc > 6) {
        make(count);
    }
    double before = sleeps();
    figure("together_ns", pair_ns(count));
    figure("sleeps", (sleeps() - before - (double)count) / (double)(pairs * count) * 1000);
    conclude();
    return 0;
}
