/* See workloads.h. */
#include "workloads.h"

#include <malloc.h>
#include <pthread.h>

#include <hakmem/hakmem.h>

#include "runtime_support.h"

enum { KIB = 1024, MIB = 1024 * KIB };

/* Slabs of many classes: superslabs, metadata, the class map. */
static void small(struct blocks *blocks)
{
    blocks_work(blocks, 6000, BLOCKS_MAX, 8, 32 * KIB);
}

/* Spans, which grow, shrink and move. */
static void large(struct blocks *blocks)
{
    for (unsigned round = 0; round < 3; round++) {
        blocks_work(blocks, 150, 48, 32 * KIB, 2 * MIB);
        blocks_free_all(blocks, 4);
        hakmem_purge();
    }
}

/* Big blocks: the BigCache, cutting off, mremap in place and to elsewhere. */
static void big(struct blocks *blocks)
{
    static const long cache_mib[] = {0, 4, 64};
    for (unsigned round = 0; round < 3; round++) {
        REQUIRE(hakmem_option_set("big_cache_mib", cache_mib[round]) == 0);
        blocks_work(blocks, 16, 5, 2 * MIB, 8 * MIB);
    }
    /* One that grows while another lies behind it cannot grow in place. */
    for (unsigned slot = 8; slot < 11; slot++)
        block_alloc(blocks, slot, 2 * MIB);
    for (unsigned slot = 8; slot < 11; slot++)
        if (blocks->slot[slot].start)
            block_resize(blocks, slot, 5 * MIB);
}

enum { THREADS = 4, GENERATIONS = 3, MAILBOXES = 64, STACK_BYTES = 256 * KIB };

/* Blocks on their way from one thread to another, who frees them; atomic, any thread. */
static void *mailbox[MAILBOXES];

/* Stacks of our own: those of the C library would be mapped and kept by it. */
static char stack[THREADS][STACK_BYTES] __attribute__((aligned(64)));

static struct blocks thread_blocks[THREADS];

static void *work_in_thread(void *argument)
{
    struct blocks *blocks = argument;
    for (unsigned round = 0; round < 8; round++) {
        blocks_work(blocks, 100, 300, 8, 64 * KIB);
        for (unsigned i = 0; i < 16; i++) {
            void **at = &mailbox[random_next(&blocks->seed) % MAILBOXES];
            free(__atomic_exchange_n(
                at, malloc(blocks_size(blocks, 16, 8 * KIB)), __ATOMIC_ACQ_REL));
        }
    }
    blocks_check_all(blocks);
    blocks_free_all(blocks, 0);
    return NULL;
}

/* Several threads, in generations: thread heaps, flushes to others' bins, late exits. */
static void threads(struct blocks *blocks)
{
    pthread_t thread[THREADS];
    pthread_attr_t attributes;
    for (unsigned generation = 0; generation < GENERATIONS; generation++) {
        bool started[THREADS];
        for (unsigned i = 0; i < THREADS; i++) {
            thread_blocks[i].seed = 1 + random_next(&blocks->seed) / 2;
            REQUIRE(pthread_attr_init(&attributes) == 0);
            REQUIRE(pthread_attr_setstack(&attributes, stack[i], STACK_BYTES) == 0);
            /* The C library needs some memory for a thread; without, it says so. */
            started[i] =
                pthread_create(&thread[i], &attributes, work_in_thread, &thread_blocks[i]) == 0;
            pthread_attr_destroy(&attributes);
        }
        blocks_work(blocks, 300, 300, 8, 64 * KIB);
        for (unsigned i = 0; i < THREADS; i++)
            if (started[i])
                REQUIRE(pthread_join(thread[i], NULL) == 0);
    }
    for (unsigned i = 0; i < MAILBOXES; i++)
        free(__atomic_exchange_n(&mailbox[i], NULL, __ATOMIC_ACQ_REL));
}

static void nap(long milliseconds)
{
    const struct timespec time = {.tv_nsec = milliseconds * 1000000};
    nanosleep(&time, NULL);
}

/* Phases of much and of little use: purges on growth, by the clock, on request. */
static void phases(struct blocks *blocks)
{
    REQUIRE(hakmem_option_set("purge_delay_ms", 1) == 0);
    REQUIRE(hakmem_option_set("retain_percent", 0) == 0);
    for (unsigned phase = 0; phase < 3; phase++) {
        for (unsigned slot = 1; slot < 1200; slot++)
            if (!blocks->slot[slot].start)
                block_alloc(blocks, slot, blocks_size(blocks, 256, 8 * KIB));
        for (unsigned slot = 1; slot < 9; slot++) {
            block_free(blocks, slot);
            block_alloc(blocks, slot, blocks_size(blocks, 256 * KIB, 4 * MIB));
        }
        blocks_free_all(blocks, 16);
        for (unsigned tick = 0; tick < 3; tick++) {
            nap(5);
            blocks_work(blocks, 60, 300, 64 * KIB, 128 * KIB);
        }
        if (phase == 0)
            malloc_trim(0);
        if (phase == 1)
            hakmem_purge();
    }
}

const struct workload workloads[WORKLOADS] = {
    {"small", small}, {"large", large}, {"big", big}, {"threads", threads}, {"phases", phases},
};
