/* Processes that give up what a log may need: descriptors, rights, files, other processes.
 *
 * usage: surroundings MODE
 */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void allocate_much(void)
{
    for (int i = 0; i < 50; i++)
        allocate_some();
}

static void expect_end(pid_t child)
{
    int status;
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- Descriptors and limits ------------------------------------------------------------------ */

static void close_all(void)
{
    allocate_some();
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    allocate_much();
    /* What is opened next has the lowest number, as the program expects. */
    REQUIRE(open("/dev/null", O_RDONLY | O_CLOEXEC) == 3);
}

static void limit(int resource, rlim_t value)
{
    const struct rlimit limits = {value, value};
    REQUIRE(setrlimit(resource, &limits) == 0);
}

static void no_descriptors(void)
{
    limit(RLIMIT_NOFILE, 3);
    allocate_much();
}

static void no_files(void)
{
    limit(RLIMIT_FSIZE, 0);
    allocate_much();
}

static void locked(void)
{
    REQUIRE(mlockall(MCL_CURRENT | MCL_FUTURE) == 0 || errno == ENOMEM || errno == EPERM);
    allocate_much();
}

/* ---- Rights ---------------------------------------------------------------------------------- */

static void fork_and_allocate(void)
{
    pid_t child = fork();
    if (child == 0) {
        allocate_much();
        _exit(0);
    }
    expect_end(child);
}

static void other_root(void)
{
    char folder[] = "root-XXXXXX";
    REQUIRE(mkdtemp(folder) != NULL);
    if (chroot(folder) == 0)
        REQUIRE(chdir("/") == 0);
    allocate_much();
    fork_and_allocate();
}

static void other_user(void)
{
    REQUIRE(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
    allocate_much();
    fork_and_allocate();
}

/* openat, and shared mappings, are refused. */
static void filtered(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_SHARED, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    allocate_some();
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    allocate_much();
    fork_and_allocate();
}

/* ---- Processes ------------------------------------------------------------------------------- */

static void many_forks(void)
{
    for (int i = 0; i < 1000; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(malloc(3000));
            _exit(0);
        }
        expect_end(child);
    }
}

/* 64 processes, each of which has a log. */
static void forks_in_forks(void)
{
    pid_t first = getpid();
    for (int i = 0; i < 6; i++) {
        allocate_some();
        REQUIRE(fork() >= 0);
    }
    allocate_some();
    while (wait(NULL) > 0)
        continue;
    if (getpid() != first)
        _exit(0);
}

static void *fork_in_thread(void *unused)
{
    for (int i = 0; i < 20; i++)
        fork_and_allocate();
    return unused;
}

/* Threads with small stacks fork while others allocate. */
static void forks_of_threads(void)
{
    pthread_t threads[4];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    REQUIRE(pthread_attr_setstacksize(&attributes, 16384) == 0);
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&threads[i], &attributes, fork_in_thread, NULL) == 0);
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_join(threads[i], NULL) == 0);
}

/* Blocks of the parent are freed in a child and in the child's child. */
static void freed_elsewhere(void)
{
    static char *blocks[1000];
    for (int i = 0; i < 1000; i++)
        REQUIRE((blocks[i] = malloc((size_t)i * 20)) != NULL);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 500; i++)
            free(blocks[i]);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            for (int i = 500; i < 1000; i++)
                REQUIRE((blocks[i] = realloc(blocks[i], 5000)) != NULL);
            allocate_some();
            _exit(0);
        }
        expect_end(grandchild);
        _exit(0);
    }
    for (int i = 0; i < 1000; i++)
        free(blocks[i]);
    expect_end(child);
}

static void vforks(void)
{
    for (int i = 0; i < 50; i++) {
        char *arguments[] = {"true", NULL};
        pid_t child;
        allocate_some();
        REQUIRE(posix_spawnp(&child, "true", NULL, NULL, arguments, environ) == 0);
        expect_end(child);
        child = vfork();
        if (child == 0)
            _exit(0);
        expect_end(child);
    }
}

/* The arguments take 1.5 MB. */
static void long_arguments(void)
{
    enum { COUNT = 15, BYTES = 100000 };
    static char *arguments[COUNT + 3];
    arguments[0] = "surroundings";
    arguments[1] = "nothing";
    for (int i = 0; i < COUNT; i++) {
        REQUIRE((arguments[i + 2] = malloc(BYTES)) != NULL);
        memset(arguments[i + 2], '%', BYTES - 1);
        arguments[i + 2][BYTES - 1] = 0;
    }
    execv("/proc/self/exe", arguments);
}

static void *allocate_on(void *unused)
{
    for (;;)
        allocate_some();
    return unused;
}

static void *exec_in_thread(void *unused)
{
    char *arguments[] = {"surroundings", "execs", NULL};
    char *nobody[] = {"nobody", NULL};
    REQUIRE(execv("/nobody/is/here", nobody) == -1 && errno == ENOENT);
    allocate_much();
    execv("/proc/self/exe", arguments);
    return unused;
}

/* The program becomes itself four times, out of a thread, while others allocate. */
static void execs(void)
{
    const char *round = getenv("EXEC_ROUND");
    char next[2] = {round ? (char)(round[0] + 1) : '1', 0};
    pthread_t threads[3];
    allocate_much();
    if (next[0] == '5')
        return;
    REQUIRE(setenv("EXEC_ROUND", next, 1) == 0);
    /* The one that calls execv comes last: Linux makes no thread (EAGAIN) meanwhile. */
    for (int i = 0; i < 3; i++)
        REQUIRE(pthread_create(&threads[i], NULL, i < 2 ? allocate_on : exec_in_thread, NULL) == 0);
    pthread_join(threads[2], NULL);
    REQUIRE(!"execv returned");
}

static void folder_gone(void)
{
    char folder[] = "/tmp/recording-XXXXXX";
    REQUIRE(mkdtemp(folder) && chdir(folder) == 0 && rmdir(folder) == 0);
    allocate_much();
    fork_and_allocate();
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {
        {"nothing", allocate_some},
        {"close_all", close_all},
        {"no_descriptors", no_descriptors},
        {"no_files", no_files},
        {"locked", locked},
        {"other_root", other_root},
        {"other_user", other_user},
        {"filtered", filtered},
        {"many_forks", many_forks},
        {"forks_in_forks", forks_in_forks},
        {"forks_of_threads", forks_of_threads},
        {"freed_elsewhere", freed_elsewhere},
        {"vforks", vforks},
        {"long_arguments", long_arguments},
        {"execs", execs},
        {"folder_gone", folder_gone}};
    return run_mode(modes, sizeof modes / sizeof *modes, argc > 1 ? argv[1] : "");
}
