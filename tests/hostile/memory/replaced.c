/* Threads replace blocks of random lengths, each written to its end. Where FULL is not 0, a block
 * begins with so many bytes, as a buffer that a file is read into, and is shortened by realloc.
 *
 * usage: replaced THREADS SLOTS FULL LOW HIGH ROUNDS
 * figures: live_mib   most bytes that all threads can have asked for at a time
 *          peak_mib   most that was resident, beyond what was before the first block
 *          faults     page faults for each block
 */
#include "hostile.h"

enum { THREADS_MAX = 64 };

static size_t threads, slots, full, low, high, rounds;

static void *work(void *seed)
{
    char **blocks = calloc(slots, sizeof *blocks);
    REQUIRE(blocks != NULL);
    random_state += (uintptr_t)seed * 7919;
    for (size_t i = 0; i < rounds; i++) {
        size_t slot = random_next() % slots, size = random_between(low, high);
        free(blocks[slot]);
        char *block = allocate(full ? full : size);
        memset(block, 1, full ? full : size);
        if (full) {
            block = realloc(block, size);
            REQUIRE(block != NULL);
        }
        blocks[slot] = block;
    }
    for (size_t slot = 0; slot < slots; slot++) {
        free(blocks[slot]);
    }
    free(blocks);
    return NULL;
}

int main(int argc, char **argv)
{
    threads = argument(argc, argv, 1);
    slots = argument(argc, argv, 2);
    full = argument(argc, argv, 3);
    low = argument(argc, argv, 4);
    high = argument(argc, argv, 5);
    rounds = argument(argc, argv, 6);
    REQUIRE(threads <= THREADS_MAX);
    pthread_t ids[THREADS_MAX];
    double before = resident_mib(), faults = page_faults();
    for (size_t i = 0; i < threads; i++) {
        start_thread(&ids[i], work, (void *)i, 256 * KIB);
    }
    for (size_t i = 0; i < threads; i++) {
        REQUIRE(pthread_join(ids[i], NULL) == 0);
    }
    figure("live_mib", (double)(threads * (slots * high + full)) / (double)MIB);
    figure("peak_mib", peak_resident_mib() - before);
    figure("faults", (page_faults() - faults) / (double)(threads * rounds));
    conclude();
    return 0;
}
