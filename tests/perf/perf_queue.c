/* One thread allocates blocks of 16 to 1024 bytes, the other frees them. They pass blocks in
 * batches, so that the time goes into the allocator and not into the queue.
 *
 * usage: perf_queue BLOCKS
 * Prints mallocs=N frees=N nanoseconds=N.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCH 200
#define BATCHES 16
#define SMALLEST 16
#define LARGEST 1024

struct batch {
    _Alignas(64) atomic_bool full; /* set by the producer, cleared by the consumer */
    unsigned char *blocks[BATCH];  /* owned by whom `full` says */
};

static struct batch ring[BATCHES];
static uint64_t batch_count;

static int64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Spins for a moment, then lets another thread have the processor. */
static void wait_until(atomic_bool *flag, bool wanted)
{
    unsigned turns = 0;
    while (atomic_load_explicit(flag, memory_order_acquire) != wanted) {
        if (++turns > 200) {
            sched_yield();
        }
    }
}

static void *consuming_main(void *argument)
{
    for (uint64_t i = 0; i < batch_count; i++) {
        struct batch *batch = &ring[i % BATCHES];
        wait_until(&batch->full, true);
        for (unsigned at = 0; at < BATCH; at++) {
            free(batch->blocks[at]);
        }
        atomic_store_explicit(&batch->full, false, memory_order_release);
    }
    return argument;
}

static void produce(void)
{
    uint64_t state = 1;
    for (uint64_t i = 0; i < batch_count; i++) {
        struct batch *batch = &ring[i % BATCHES];
        wait_until(&batch->full, false);
        for (unsigned at = 0; at < BATCH; at++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            size_t size = SMALLEST + (size_t)(((state >> 48) * (LARGEST - SMALLEST + 1)) >> 16);
            batch->blocks[at] = malloc(size);
            batch->blocks[at][0] = (unsigned char)at;
        }
        atomic_store_explicit(&batch->full, true, memory_order_release);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: perf_queue BLOCKS\n");
        return 2;
    }
    pthread_t consumer;
    batch_count = strtoull(argv[1], NULL, 10) / BATCH;
    int64_t start = nanoseconds_now();
    if (pthread_create(&consumer, NULL, consuming_main, NULL) != 0) {
        return 1;
    }
    produce();
    pthread_join(consumer, NULL);
    int64_t end = nanoseconds_now();
    uint64_t calls = batch_count * BATCH;
    printf(
        "mallocs=%" PRIu64 " frees=%" PRIu64 " nanoseconds=%" PRId64 "\n", calls, calls,
        end - start);
    return 0;
}
