/* measure: starts one command, reports what it cost, and leaves nothing of it behind.
 *
 *     measure TIME_LIMIT_MS INPUT [NAME=VALUE ...] -- COMMAND [ARGUMENT ...]
 *
 * Standard input is the line to the caller, a socket. The command starts when a byte arrives on
 * it, so that a caller who wants to trace has time to attach; the report goes back on it as one
 * line of JSON. When the caller closes it, or SIGINT, SIGTERM or SIGHUP arrives and is not ignored,
 * the run is over. The command reads the file INPUT, shares our standard output and error, has the
 * NAME=VALUE pairs in its environment, and is the leader of a session of its own. Of what it writes
 * the beginning is kept, and the rest dropped while it runs, so that it cannot fill the memory.
 *
 * The figures cover the command and the children that it waited for. A hardware counter is a
 * number, or a text that says why there is none. The peak is that of the largest process.
 *
 * Why a program of its own: the kernel counts the peak of a process, and its page faults, from
 * before its exec, when it still is a copy of its parent. This parent is linked statically and
 * lends the child its memory instead of copying it (vfork), which leaves no trace in the figures.
 *
 * Processes that lose their parent become children of measure (PR_SET_CHILD_SUBREAPER), daemons
 * included. So what is left when the command has ended, or must end, can be found and ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CALLER = STDIN_FILENO,
    USAGE_ERROR = 125,
    GRACE_MS = 500, /* between SIGTERM and SIGKILL */
    KILL_MS = 5000, /* for the kernel to carry out SIGKILL */
    ROUND_MS = 10,
    OUTPUT_ROUND_MS = 50,
    KEPT_BYTES = 64 << 20, /* of standard output, and of standard error */
    SLACK_BYTES = 16 << 20,
};

enum outcome { ENDED, NOT_STARTED, TIME_LIMIT, INTERRUPTED };

struct run {
    int64_t deadline_ms;
    int signals; /* signalfd of SIGCHLD and the signals that end a run */
    pid_t child;
    bool child_reaped;
    int start_error; /* errno of exec; 0: the command was started */
    double start_s, end_s;
    int status;
    struct rusage usage;
};

struct counter {
    const char *name;
    uint32_t type;
    uint64_t config;
    int fd;
    int error; /* errno when there is no such counter */
};

#define DATA_TLB_READ_MISSES                                                                       \
    (PERF_COUNT_HW_CACHE_DTLB | (PERF_COUNT_HW_CACHE_OP_READ << 8) |                               \
     (PERF_COUNT_HW_CACHE_RESULT_MISS << 16))

static struct counter counters[] = {
    {.name = "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {.name = "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {.name = "cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {.name = "tlb_misses", PERF_TYPE_HW_CACHE, DATA_TLB_READ_MISSES},
};
static const size_t counter_count = sizeof counters / sizeof counters[0];

/* ---- Small things ---------------------------------------------------------------------------- */

static void fail(const char *what)
{
    dprintf(CALLER, "{\"end\":{\"failed\":\"%s: %s\"}}\n", what, strerror(errno));
    exit(USAGE_ERROR);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int64_t milliseconds_now(void)
{
    return (int64_t)(seconds_now() * 1e3);
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* ---- Hardware counters ----------------------------------------------------------------------- */

/* The counters hang on this process but count nothing in it: inherited by the child, each begins
 * with the child's exec, and what the child and its children counted is added up here when they
 * end. */
static void open_counters(void)
{
    for (size_t i = 0; i < counter_count; i++) {
        struct counter *counter = &counters[i];
        struct perf_event_attr attributes = {
            .size = sizeof attributes,
            .type = counter->type,
            .config = counter->config,
            .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
            .disabled = 1,
            .inherit = 1,
            .enable_on_exec = 1,
            .exclude_kernel = 1,
            .exclude_hv = 1,
        };
        counter->fd =
            (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        counter->error = counter->fd < 0 ? errno : 0;
    }
}

/* Reads a counter. One that had to share the hardware with others is scaled to the whole time. */
static bool read_counter(const struct counter *counter, uint64_t *value)
{
    struct {
        uint64_t value, enabled_ns, running_ns;
    } reading;
    if (counter->fd < 0 || read(counter->fd, &reading, sizeof reading) != sizeof reading)
        return false;
    if (reading.enabled_ns > 0 && reading.running_ns == 0)
        return false; /* It never got the hardware. */
    *value = reading.value;
    if (reading.running_ns < reading.enabled_ns) {
        double share = (double)reading.running_ns / (double)reading.enabled_ns;
        *value = (uint64_t)((double)reading.value / share);
    }
    return true;
}

/* ---- Start and end of the command ------------------------------------------------------------ */

/* Turns the child into the command; returns if that fails. The child shares our memory: it may
 * change nothing in it. */
static void become(char **command, int input, const sigset_t *mask)
{
    setsid();
    /* Were measure killed, the command should not run on. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (dup2(input, STDIN_FILENO) < 0)
        return;
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(command[0], command);
}

static void start(struct run *run, const char *input, char **command, const sigset_t *mask)
{
    static volatile int exec_error; /* The child's one write into our memory. */
    int fd = open(input, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail("the input cannot be read");
    run->start_s = seconds_now();
    pid_t child = vfork();
    if (child == 0) {
        become(command, fd, mask);
        exec_error = errno;
        _exit(127);
    }
    if (child < 0)
        fail("vfork");
    run->child = child;
    run->start_error = exec_error;
    close(fd);
}

/* Reaps what has ended. Returns whether there may be more to come. */
static bool reap(struct run *run)
{
    int status;
    struct rusage usage;
    for (;;) {
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid <= 0)
            return pid == 0 || errno != ECHILD;
        if (pid == run->child && !run->child_reaped) {
            run->end_s = seconds_now();
            run->status = status;
            run->usage = usage;
            run->child_reaped = true;
        }
    }
}

/* Takes what lies behind the kept part out of a file of the command's output. The command does not
 * notice: for it, the file is as long as before. */
static void drop_output(int fd)
{
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_blocks * 512 > KEPT_BYTES + SLACK_BYTES)
        fallocate(
            fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, KEPT_BYTES,
            status.st_size - KEPT_BYTES);
}

/* Waits for a signal or the end of the caller. Returns false if the run has to end. */
static bool await_signal(const struct run *run, int timeout_ms)
{
    struct pollfd waits[] = {{.fd = run->signals, .events = POLLIN}, {.fd = CALLER}};
    if (poll(waits, 2, timeout_ms) <= 0)
        return true;
    struct signalfd_siginfo signal;
    if (waits[0].revents && read(run->signals, &signal, sizeof signal) == sizeof signal &&
        signal.ssi_signo != SIGCHLD)
        return false;
    return waits[1].revents == 0;
}

static enum outcome await_end(struct run *run)
{
    for (;;) {
        reap(run);
        if (run->child_reaped)
            return run->start_error ? NOT_STARTED : ENDED;
        int64_t remaining_ms = run->deadline_ms - milliseconds_now();
        if (remaining_ms <= 0)
            return TIME_LIMIT;
        if (!await_signal(
                run, remaining_ms < OUTPUT_ROUND_MS ? (int)remaining_ms : OUTPUT_ROUND_MS))
            return INTERRUPTED;
        drop_output(STDOUT_FILENO);
        drop_output(STDERR_FILENO);
    }
}

/* ---- What is left of the command ------------------------------------------------------------- */

/* Sends a signal to every child of ours. None of them can be another's process by now: only we
 * reap them. */
static void signal_children(int signal)
{
    FILE *children = fopen("/proc/thread-self/children", "re");
    if (!children)
        return;
    int pid;
    while (fscanf(children, "%d", &pid) == 1)
        kill(pid, signal);
    fclose(children);
}

/* Reaps for a while. Returns whether nothing is left. */
static bool await_all(struct run *run, int time_ms, int signal)
{
    int64_t deadline_ms = milliseconds_now() + time_ms;
    while (reap(run)) {
        if (milliseconds_now() >= deadline_ms)
            return false;
        /* A killed parent's children become ours, so each round reaches one generation more. */
        if (signal)
            signal_children(signal);
        await_signal(run, ROUND_MS);
    }
    return true;
}

static void stop_all(struct run *run)
{
    if (!reap(run))
        return;
    if (!run->child_reaped)
        kill(-run->child, SIGTERM); /* Its process group; later the number may be another's. */
    signal_children(SIGTERM);
    if (await_all(run, GRACE_MS, 0) || await_all(run, KILL_MS, SIGKILL))
        return;
    errno = ETIMEDOUT;
    fail("a process of the command could not be killed");
}

/* ---- The report ------------------------------------------------------------------------------ */

static void report_cost(const struct run *run)
{
    const struct rusage *usage = &run->usage;
    dprintf(
        CALLER,
        "{\"end\":{\"%s\":%d},\"wall_s\":%.9f,\"user_s\":%.6f,\"system_s\":%.6f,"
        "\"peak_rss_kib\":%ld,\"minor_faults\":%ld,\"major_faults\":%ld,"
        "\"voluntary_switches\":%ld,\"involuntary_switches\":%ld",
        WIFSIGNALED(run->status) ? "signal" : "code",
        WIFSIGNALED(run->status) ? WTERMSIG(run->status) : WEXITSTATUS(run->status),
        run->end_s - run->start_s, seconds_of(usage->ru_utime), seconds_of(usage->ru_stime),
        usage->ru_maxrss, usage->ru_minflt, usage->ru_majflt, usage->ru_nvcsw, usage->ru_nivcsw);
    for (size_t i = 0; i < counter_count; i++) {
        const struct counter *counter = &counters[i];
        uint64_t value;
        if (read_counter(counter, &value))
            dprintf(CALLER, ",\"%s\":%" PRIu64, counter->name, value);
        else
            dprintf(
                CALLER, ",\"%s\":\"%s\"", counter->name,
                counter->error ? strerror(counter->error) : "the counter was never scheduled");
    }
    dprintf(CALLER, "}\n");
}

static void report(const struct run *run, enum outcome outcome)
{
    switch (outcome) {
    case ENDED:
        report_cost(run);
        break;
    case NOT_STARTED:
        dprintf(CALLER, "{\"end\":{\"not_started\":\"%s\"}}\n", strerror(run->start_error));
        break;
    case TIME_LIMIT:
        dprintf(CALLER, "{\"end\":\"time_limit\"}\n");
        break;
    case INTERRUPTED:
        dprintf(CALLER, "{\"end\":\"interrupted\"}\n");
        break;
    }
}

/* ---- main ------------------------------------------------------------------------------------ */

static int usage(void)
{
    fputs(
        "usage: measure TIME_LIMIT_MS INPUT [NAME=VALUE ...] -- COMMAND [ARGUMENT ...]\n", stderr);
    return USAGE_ERROR;
}

/* Takes the arguments. Returns the command, or NULL if they are wrong. */
static char **parse(char **argv, int64_t *time_limit_ms)
{
    char *end;
    if (!argv[0] || !argv[1] || !argv[2])
        return NULL;
    *time_limit_ms = strtoll(argv[1], &end, 10);
    if (*end || end == argv[1] || *time_limit_ms <= 0)
        return NULL;
    char **argument = argv + 3;
    for (; *argument && strcmp(*argument, "--") != 0; argument++) {
        if (!strchr(*argument, '=') || putenv(*argument) != 0)
            return NULL;
    }
    return *argument && argument[1] ? argument + 1 : NULL;
}

/* Blocks the signals that we wait for; the mask before is the command's. A blocked signal is kept
 * even if it is ignored, as SIGHUP under nohup; but such a one must not end the run. Ctrl-Z must
 * not stop us: the command goes on in a session of its own, and we have to see when it ends. Who
 * ignores SIGCHLD cannot wait for children; neither we nor the command, whose children are part of
 * the figures, may inherit that. */
static int take_signals(sigset_t *mask)
{
    signal(SIGCHLD, SIG_DFL);
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct sigaction action;
        if (sigaction(ends[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&ours, ends[i]);
    }
    int signals = signalfd(-1, &ours, SFD_CLOEXEC);
    sigaddset(&ours, SIGTSTP);
    sigprocmask(SIG_BLOCK, &ours, mask);
    return signals;
}

int main(int argc, char **argv)
{
    (void)argc;
    struct run run = {.child = -1};
    int64_t time_limit_ms;
    char **command = parse(argv, &time_limit_ms);
    if (!command)
        return usage();
    char byte;
    if (read(CALLER, &byte, 1) != 1)
        return 0; /* The caller changed its mind. */

    sigset_t mask;
    run.signals = take_signals(&mask);
    if (run.signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        fail("measure cannot watch over processes");
    open_counters();
    run.deadline_ms = milliseconds_now() + time_limit_ms;
    start(&run, argv[2], command, &mask);
    signal(SIGPIPE, SIG_IGN); /* A caller that is gone is no reason to stop half-way. */
    enum outcome outcome = await_end(&run);
    stop_all(&run);
    report(&run, outcome);
    return 0;
}
