/* On a kernel that knows no guard regions (before Linux 6.13), which a filter makes of this one,
 * threads hold many blocks of which each has its first byte written to, and then free all of them.
 *
 * usage: old_kernel SIZE COUNT THREADS
 *
 * figures, of all rounds: allocate_faults, free_faults   page faults a block
 *                         allocate_us, free_us           processor time
 */
#include "hostile.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

/* As their numbers are in newer headers. */
enum { POPULATE_WRITE = 23, GUARD_INSTALL = 102, GUARD_REMOVE = 103 };
enum { ROUNDS = 2, THREADS_MAX = 8 };

static size_t size, count, threads;
static char **blocks;
static pthread_barrier_t barrier;

static void refuse_newer_advice(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, POPULATE_WRITE, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GUARD_INSTALL, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, GUARD_REMOVE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        skip("the system has no filters of system calls");
    }
}

/* Adds to what was spent between two calls of the first thread, all threads being at one place. */
static void meet(double *faults, double *us, bool first)
{
    pthread_barrier_wait(&barrier);
    if (first) {
        *faults += page_faults();
        *us += cpu_s() * 1e6;
    }
    pthread_barrier_wait(&barrier);
}

static double faults[3], us[3];

static void *work(void *argument)
{
    char **mine = argument;
    bool first = mine == blocks;
    for (unsigned round = 0; round < ROUNDS; round++) {
        meet(&faults[0], &us[0], first);
        for (size_t i = 0; i < count; i++) {
            mine[i] = allocate(size);
            mine[i][0] = 1;
        }
        meet(&faults[1], &us[1], first);
        for (size_t i = 0; i < count; i++) {
            free(mine[i]);
        }
        meet(&faults[2], &us[2], first);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t others[THREADS_MAX];
    if (argc == 4) {
        char *again[] = {argv[0], argv[1], argv[2], argv[3], "filtered", NULL};
        refuse_newer_advice();
        execv("/proc/self/exe", again);
        REQUIRE(false);
    }
    size = argument(argc, argv, 1);
    count = argument(argc, argv, 2);
    threads = argument(argc, argv, 3);
    REQUIRE(threads <= THREADS_MAX);
    blocks = allocate(threads * count * sizeof *blocks);
    memset(blocks, 0, threads * count * sizeof *blocks);
    REQUIRE(pthread_barrier_init(&barrier, NULL, (unsigned)threads) == 0);
    for (size_t i = 1; i < threads; i++) {
        start_thread(&others[i], work, blocks + i * count, MIB);
    }
    work(blocks);
    for (size_t i = 1; i < threads; i++) {
        REQUIRE(pthread_join(others[i], NULL) == 0);
    }
    double all = (double)(ROUNDS * threads * count);
    figure("allocate_faults", (faults[1] - faults[0]) / all);
    figure("free_faults", (faults[2] - faults[1]) / all);
    figure("allocate_us", (us[1] - us[0]) / all);
    figure("free_us", (us[2] - us[1]) / all);
    free(blocks);
    conclude();
    return 0;
}
