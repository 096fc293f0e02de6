/* Ordinary work in a process that is in an unusual situation. It must cost about what it costs in a
 * usual one, as a child of the same process finds out.
 *
 * usage: churn SITUATION THREADS
 *
 *     reserved         16 TiB of addresses were reserved after the allocator's first call
 *     locked           all memory is locked, and will be (mlockall)
 *     low_limit        started under RLIMIT_AS of 512 MiB, which was then lifted
 *     bottom_up        addresses are handed out upwards, as with `ulimit -s unlimited`
 *     one_cpu          started on one processor, then allowed on all
 *     fewer_cpus       started on all, then confined to one
 *
 * figures: usual_ms     processor time of the work, usually
 *          unusual_ms   in the situation
 *          rss_mib      resident memory after it, with what is live then
 */
#include "hostile.h"

#include <sched.h>

enum { BLOCKS = 60000, ROUNDS = 600000 };

#define STARTED "HOSTILE_STARTED"

static void *work(void *unused)
{
    char **blocks = allocate(BLOCKS * sizeof *blocks);
    memset(blocks, 0, BLOCKS * sizeof *blocks);
    for (unsigned i = 0; i < ROUNDS; i++) {
        size_t at = random_between(0, BLOCKS - 1), size = random_between(16, 2000);
        free(blocks[at]);
        blocks[at] = allocate(random_next() % 200 == 0 ? size * 50 : size);
        blocks[at][0] = blocks[at][size - 1] = 1;
    }
    (void)unused;
    return blocks;
}

/* Starts the program anew, once, since what is set up has to be there when it starts. */
static void start_anew(char **argv)
{
    if (!getenv(STARTED)) {
        setenv(STARTED, "1", 1);
        execv("/proc/self/exe", argv);
        REQUIRE(!"execv");
    }
}

static void set_limit(int kind, rlim_t bytes)
{
    struct rlimit limit;
    REQUIRE(getrlimit(kind, &limit) == 0);
    limit.rlim_cur = bytes;
    if (setrlimit(kind, &limit) != 0) {
        skip("the limit cannot be set here");
    }
}

static void reserve_addresses(void)
{
    free(allocate(100));
    void *range =
        mmap(NULL, (size_t)16 << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
        skip("16 TiB cannot be reserved here");
    }
}

static void confine(const cpu_set_t *allowed, bool to_one)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, allowed)) {
            CPU_SET(cpu, &one);
        }
    }
    REQUIRE(sched_setaffinity(0, sizeof one, to_one ? &one : allowed) == 0);
}

static void set_up(const char *situation, char **argv)
{
    cpu_set_t allowed;
    REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    if (strcmp(situation, "reserved") == 0) {
        reserve_addresses();
    } else if (strcmp(situation, "locked") == 0) {
        if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
            skip("memory cannot be locked here");
        }
    } else if (strcmp(situation, "low_limit") == 0) {
        if (!getenv(STARTED)) {
            set_limit(RLIMIT_AS, 512 * MIB);
        }
        start_anew(argv);
        free(allocate(100));
        set_limit(RLIMIT_AS, RLIM_INFINITY);
    } else if (strcmp(situation, "bottom_up") == 0) {
        set_limit(RLIMIT_STACK, RLIM_INFINITY);
        start_anew(argv);
    } else if (strcmp(situation, "one_cpu") == 0) {
        confine(&allowed, true);
        free(allocate(100));
        confine(&allowed, false);
    } else {
        REQUIRE(strcmp(situation, "fewer_cpus") == 0);
        free(allocate(100));
        confine(&allowed, true);
    }
}

static double work_ms(size_t count)
{
    pthread_t threads[16];
    REQUIRE(count <= 16);
    double start = cpu_s();
    for (size_t i = 0; i < count; i++) {
        start_thread(&threads[i], work, NULL, 256 * KIB);
    }
    for (size_t i = 0; i < count; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    return (cpu_s() - start) * 1e3;
}

/* In a child, so that the situation finds a heap that nothing happened to. */
static void work_as_usual(size_t count)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        figure("usual_ms", work_ms(count));
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 2);
    if (!getenv(STARTED)) {
        work_as_usual(count);
    }
    set_up(argv[1], argv);
    figure("unusual_ms", work_ms(count));
    figure("rss_mib", resident_mib());
    conclude();
    _exit(0);
}
