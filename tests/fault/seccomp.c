/* A filter lets through the system calls that the allocator is promised to do with, and no others:
 * behaviour 42. The first call that is not in the list ends the process, which says its number.
 *
 * usage: fault_seccomp running|first|fresh|advice|moving|growing|unmoved|control
 *
 * running: threads that have allocated before go on under the filter, through all tiers and their
 * slow paths: mmap, munmap, mremap, madvise, mprotect, futex, getrandom.
 * first: threads make their first call of all under the filter. That takes gettid besides, and
 * where no heap lies ready, getpid and tgkill: is the owner of another heap still alive?
 * fresh: the first call of the whole process comes under the filter; there is one thread.
 * advice: as running, but no advice of madvise passes than the one that gives memory back.
 * moving: as running, but without realloc, and mremap passes only as the C library's realloc calls
 * it: the filter of Tor. growing: the same with realloc. unmoved: no mremap passes. For moving and
 * unmoved cached blocks, which malloc makes longer by mremap, have to be switched off.
 * control: a call outside the list, by which the filter has to show that it works.
 *
 * exit_group and write are allowed for the test's own end. Prints "done".
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/mman.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/syscall.h>

#include <hakmem/hakmem.h>

#include "blocks.h"
#include "runtime_support.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__riscv)
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

enum { THREADS = 3, ALLOWED_MAX = 16, KIB = 1024, MIB = 1024 * KIB, REFUSED = 3 };

static const int promised[] = {SYS_mmap,     SYS_munmap, SYS_mremap,   SYS_madvise,
                               SYS_mprotect, SYS_futex,  SYS_getrandom};
static const int for_the_test[] = {SYS_exit_group, SYS_write};
static const int for_first_calls[] = {SYS_gettid, SYS_getpid, SYS_tgkill};

static struct sock_filter code[2 * ALLOWED_MAX + 16];
static unsigned short length;

static void emit(uint16_t operation, uint8_t if_true, uint8_t if_false, uint32_t value)
{
    code[length++] = (struct sock_filter){operation, if_true, if_false, value};
}

static void allow(const int *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)calls[i]);
        emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    }
}

/* The handler of the signal by which the kernel says that a call is not allowed. */
static void call_refused(int number, siginfo_t *info, void *context)
{
    char digits[] = "call 000 is not allowed\n";
    (void)number;
    (void)context;
    for (int at = 7, rest = info->si_syscall; at > 4; rest /= 10)
        digits[at--] = (char)('0' + rest % 10);
    say(digits);
    _exit(REFUSED);
}

/* Lets the call pass with that argument, and not with others. */
static void allow_only(int call, unsigned argument, uint32_t value)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, (uint32_t)call);
    emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offsetof(struct seccomp_data, args[argument]));
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
    emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
    emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP);
}

/* For all threads of the process. False: the kernel has no such filters. */
static bool install_filter(const char *mode)
{
    emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
    emit(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, ARCHITECTURE);
    emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
    emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
    if (strcmp(mode, "advice") == 0)
        allow_only(SYS_madvise, 2, MADV_DONTNEED);
    if (strcmp(mode, "moving") == 0 || strcmp(mode, "growing") == 0)
        allow_only(SYS_mremap, 3, MREMAP_MAYMOVE);
    if (strcmp(mode, "unmoved") == 0)
        allow_only(SYS_mremap, 3, UINT32_MAX);
    allow(promised, sizeof promised / sizeof *promised);
    allow(for_the_test, sizeof for_the_test / sizeof *for_the_test);
    if (strcmp(mode, "first") == 0)
        allow(for_first_calls, sizeof for_first_calls / sizeof *for_first_calls);
    emit(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP);
    const struct sock_fprog program = {length, code};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = call_refused;
    action.sa_flags = SA_SIGINFO;
    REQUIRE(sigaction(SIGSYS, &action, NULL) == 0);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

static bool resizes;

static void work(
    struct blocks *blocks, unsigned operations, unsigned slots, size_t least, size_t most)
{
    if (resizes)
        blocks_work(blocks, operations, slots, least, most);
    for (unsigned i = 0; !resizes && i < operations; i++) {
        unsigned slot = random_next(&blocks->seed) % slots;
        if (blocks->slot[slot].start)
            block_free(blocks, slot);
        else
            block_alloc(blocks, slot, blocks_size(blocks, least, most));
    }
}

/* All tiers, sizes up and down, growing in place and by moving, purge by request and by clock. */
static void use_everything(struct blocks *blocks)
{
    for (unsigned round = 0; round < 4; round++) {
        work(blocks, 4000, BLOCKS_MAX, 8, 32 * KIB);
        work(blocks, 150, 40, 32 * KIB, 2 * MIB);
        work(blocks, 20, 4, 2 * MIB, 8 * MIB);
        blocks_check_all(blocks);
        blocks_free_all(blocks, 7);
        hakmem_purge();
        malloc_trim(0);
        hakmem_thread_flush();
    }
    blocks_free_all(blocks, 0);
}

static struct blocks tables[THREADS + 1];
static sem_t ready, go, done;
static bool allocate_before;

static void *thread_main(void *argument)
{
    struct blocks *blocks = argument;
    if (allocate_before)
        free(malloc(100));
    sem_post(&ready);
    sem_wait(&go);
    use_everything(blocks);
    sem_post(&done);
    /* A thread's end takes other calls of the C library: the process ends first. */
    for (;;)
        sem_wait(&ready);
    return NULL;
}

static void start_threads(void)
{
    pthread_t thread;
    REQUIRE(sem_init(&ready, 0, 0) == 0 && sem_init(&go, 0, 0) == 0 && sem_init(&done, 0, 0) == 0);
    for (unsigned i = 0; i < THREADS; i++) {
        tables[i].seed = i + 1;
        REQUIRE(pthread_create(&thread, NULL, thread_main, &tables[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        while (sem_wait(&ready) != 0)
            continue;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        say("usage: fault_seccomp running|first|fresh|advice|moving|growing|unmoved|control\n");
        return 2;
    }
    const char *mode = argv[1];
    unsigned threads = strcmp(mode, "fresh") == 0 ? 0 : THREADS;
    resizes = strcmp(mode, "moving") != 0 && strcmp(mode, "unmoved") != 0;
    allocate_before = strcmp(mode, "first") != 0;
    tables[THREADS].seed = 99;
    if (threads) {
        /* Ticks by the clock, at every look. */
        REQUIRE(hakmem_option_set("purge_delay_ms", 1) == 0);
        watchdog(HANG_SECONDS, "seccomp");
        start_threads();
    }
    if (!install_filter(mode)) {
        say("skipped: this kernel does not filter system calls\n");
        return RUNTIME_SKIPPED;
    }
    for (unsigned i = 0; i < threads; i++)
        sem_post(&go);
    use_everything(&tables[THREADS]);
    for (unsigned i = 0; i < threads; i++)
        while (sem_wait(&done) != 0)
            continue;
    if (strcmp(mode, "control") == 0)
        syscall(SYS_getppid);
    ssize_t written = write(STDOUT_FILENO, "done\n", 5);
    _exit(written == 5 ? 0 : 1);
}
