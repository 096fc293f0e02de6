/* Programs that treat their descriptors as programs do, and worse, while statistics are asked for:
 * runtime_report.py runs them and looks at what arrived.
 *
 *     runtime_report MODE [FILE]
 *
 * FILE is the program's own, in which nobody else may write. */
#include "runtime_support.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { DESCRIPTORS = 4096 };

static const char *file_name;

static void use_heap(void)
{
    for (unsigned i = 0; i < 100; i++)
        free(malloc(i * i * 100));
}

/* As GNU's programs do at exit, to learn whether their output arrived. */
static void close_streams(void)
{
    REQUIRE(fclose(stdout) == 0);
    REQUIRE(fclose(stderr) == 0);
}

/* The file gets the number of standard error. */
static void reuse(void)
{
    close(STDERR_FILENO);
    REQUIRE(open(file_name, O_CREAT | O_WRONLY | O_TRUNC, 0600) == STDERR_FILENO);
    REQUIRE(write(STDERR_FILENO, "data", 4) == 4);
}

/* As daemons do with all that they have inherited, but for the standard streams. */
static void close_all(void)
{
    for (int fd = 3; fd < DESCRIPTORS; fd++)
        close(fd);
}

/* The file gets every number that there is. */
static void take_all(void)
{
    int own = open(file_name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    REQUIRE(own >= 0 && write(own, "data", 4) == 4);
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (dup2(own, fd) < 0)
            break;
}

/* Standard error was closed when the program started. */
static void open_first(void)
{
    int fd;
    do
        fd = open(file_name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    while (fd < STDERR_FILENO);
    REQUIRE(fd == STDERR_FILENO && write(fd, "data", 4) == 4);
}

/* The child lets go of the streams and goes on; whoever waits for their end must see it. */
static void daemon_child(void)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child > 0)
        return;
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    use_heap();
    sleep(20);
    _exit(0);
}

static void fork_child(void)
{
    pid_t child = fork();
    int status;
    REQUIRE(child >= 0);
    if (child == 0) {
        use_heap();
        exit(0);
    }
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

/* What another program finds open. */
static void execute(void)
{
    REQUIRE(unsetenv("HAKMEM_STATS") == 0);
    execl("/bin/ls", "ls", "/proc/self/fd", (char *)NULL);
    REQUIRE(!"executed");
}

static void limit_files(void)
{
    const struct rlimit none = {0, 0};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &none) == 0);
}

/* No file can be opened any more. */
static void filter_opens(void)
{
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_readlinkat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
        exit(RUNTIME_SKIPPED);
}

/* SIGPIPE that waits is not the report's. */
static void pending_signal(void)
{
    sigset_t set;
    REQUIRE(sigemptyset(&set) == 0 && sigaddset(&set, SIGPIPE) == 0);
    REQUIRE(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && raise(SIGPIPE) == 0);
    malloc_stats();
    REQUIRE(sigpending(&set) == 0 && sigismember(&set, SIGPIPE) == 1);
}

static void leave_at_once(void)
{
    _exit(0);
}

static const struct {
    const char *name;
    void (*act)(void);
} modes[] = {
    {"nothing", use_heap},
    {"close_streams", close_streams},
    {"reuse", reuse},
    {"close_all", close_all},
    {"take_all", take_all},
    {"open_first", open_first},
    {"daemon_child", daemon_child},
    {"fork_child", fork_child},
    {"execute", execute},
    {"limit_files", limit_files},
    {"filter_opens", filter_opens},
    {"pending_signal", pending_signal},
    {"leave_at_once", leave_at_once},
    {"abort", abort},
};

int main(int argc, char **argv)
{
    use_heap();
    file_name = argc > 2 ? argv[2] : NULL;
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof *modes; i++)
        if (strcmp(argv[1], modes[i].name) == 0) {
            modes[i].act();
            return 0;
        }
    return 2;
}
