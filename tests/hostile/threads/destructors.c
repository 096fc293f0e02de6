/* Threads that leave their work to destructors of thread-specific data, as interpreters and pools
 * of libraries do: the destructor frees a part of the thread's blocks in each round, and sets its
 * key again. The key is made after the allocator's. Some threads make no call before that.
 *
 * usage: destructors THREADS BLOCKS ROUNDS own|given
 *        own: the thread makes its blocks; given: the first thread does
 * figures: free_ns      processor time of a free in a destructor
 *          growth_mib   resident memory after all of them, beyond that after a tenth
 */
#include "hostile.h"

struct work {
    void **blocks;
    size_t count, freed, round, rounds;
    bool given;
    double spent_s;
};

static pthread_key_t key;

static void make_blocks(struct work *work)
{
    for (size_t i = 0; i < work->count; i++) {
        work->blocks[i] = allocate(64);
        memset(work->blocks[i], 1, 64);
    }
}

static void free_some(void *argument)
{
    struct work *work = argument;
    size_t end = work->count * ++work->round / work->rounds;
    double start = thread_cpu_s();
    while (work->freed < end) {
        free(work->blocks[work->freed++]);
    }
    work->spent_s += thread_cpu_s() - start;
    if (work->round < work->rounds) {
        REQUIRE(pthread_setspecific(key, work) == 0);
    }
}

static void *live(void *argument)
{
    struct work *work = argument;
    if (!work->given) {
        make_blocks(work);
    }
    REQUIRE(pthread_setspecific(key, work) == 0);
    return NULL;
}

int main(int argc, char **argv)
{
    size_t threads = argument(argc, argv, 1);
    struct work work = {
        .count = argument(argc, argv, 2),
        .rounds = argument(argc, argv, 3),
        .given = argc > 4 && strcmp(argv[4], "given") == 0};
    double before = 0;
    watch("destructors");
    work.blocks = allocate(work.count * sizeof *work.blocks);
    REQUIRE(pthread_key_create(&key, free_some) == 0);
    for (size_t i = 0; i < threads; i++) {
        pthread_t thread;
        work.freed = work.round = 0;
        if (work.given) {
            make_blocks(&work);
        }
        start_thread(&thread, live, &work, 64 * KIB);
        REQUIRE(pthread_join(thread, NULL) == 0 && work.freed == work.count);
        if (i == threads / 10) {
            before = resident_mib();
        }
    }
    figure("free_ns", work.spent_s / (double)(threads * work.count) * 1e9);
    figure("growth_mib", resident_mib() - before);
    conclude();
    return 0;
}
