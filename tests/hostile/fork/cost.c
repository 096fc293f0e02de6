/* fork, _exit and wait of a process with idle threads, each of which has allocated, and a heap of
 * live blocks: it must cost little more than the system asks for.
 *
 * usage: cost THREADS HEAP_MIB FORKS [BLOCKS]
 * BLOCKS of several sizes are what each child allocates; 0, the default: it ends at once.
 * figures: fork_us     processor time of parent and child for one fork
 *          faults      page faults in a child
 */
#include "hostile.h"

static pthread_barrier_t ready;

static void *idle(void *unused)
{
    enum { BLOCKS = 40 };
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate((size_t)(16 + i * 30));
        blocks[i][0] = 1;
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    pthread_barrier_wait(&ready);
    pause();
    return unused;
}

/* A list, so that the program needs no other memory for it. */
static void fill_heap(size_t bytes)
{
    static void **first;
    for (size_t size; bytes > 0; bytes -= size) {
        size = random_between(16, 400);
        size = size < bytes ? size : bytes;
        void **block = allocate(size + sizeof *block);
        memset(block, 1, size);
        *block = first;
        first = block;
    }
}

static void work_as_child(size_t blocks)
{
    for (size_t i = 0; i < blocks; i++) {
        char *block = allocate(16 + i * 37 % 3000);
        block[0] = 1;
        free(block);
    }
}

static double usage_s(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

int main(int argc, char **argv)
{
    size_t threads = argument(argc, argv, 1), forks = argument(argc, argv, 3);
    size_t child_blocks = argc > 4 ? argument(argc, argv, 4) : 0;
    REQUIRE(pthread_barrier_init(&ready, NULL, (unsigned)threads + 1) == 0);
    for (size_t i = 0; i < threads; i++) {
        pthread_t thread;
        start_thread(&thread, idle, NULL, 64 * KIB);
    }
    pthread_barrier_wait(&ready);
    fill_heap(argument(argc, argv, 2) * MIB);
    double start = usage_s(RUSAGE_SELF) + usage_s(RUSAGE_CHILDREN);
    for (size_t i = 0; i < forks; i++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            work_as_child(child_blocks);
            _exit(0);
        }
        REQUIRE(waitpid(child, NULL, 0) == child);
    }
    double spent = usage_s(RUSAGE_SELF) + usage_s(RUSAGE_CHILDREN) - start;
    struct rusage children;
    getrusage(RUSAGE_CHILDREN, &children);
    figure("fork_us", spent / (double)forks * 1e6);
    figure("faults", (double)children.ru_minflt / (double)forks);
    conclude();
    _exit(0);
}
