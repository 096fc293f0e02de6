/* measure: runs one command and reports what it cost, as one line of JSON.
 *
 *     measure OUTPUT [NAME=VALUE ...] -- COMMAND [ARGUMENT ...]
 *
 * The command's standard output goes to the file OUTPUT; the NAME=VALUE pairs are added to its
 * environment. The report has the wall-clock, user and system seconds, the peak resident set in
 * KiB, and the exit code (128 + signal number when a signal ended the command).
 *
 * Why a program of its own: the kernel counts the peak of a process from before its exec, when it
 * still is a copy of its parent. A parent of a few hundred KiB leaves no trace in the figure; a
 * Python interpreter would. The figures cover the command and the children that it waited for;
 * the peak is that of the largest process among them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
    fprintf(stderr, "measure: %s: %s\n", what, strerror(errno));
    exit(125);
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Turns this process, the forked child, into the command. */
static void become(char **command, char **environment, int output)
{
    /* A command that hangs dies with us when our caller's time limit strikes. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (char **pair = environment; pair < command - 1; pair++) {
        if (putenv(*pair) != 0) {
            fail("putenv");
        }
    }
    if (dup2(output, STDOUT_FILENO) < 0) {
        fail("dup2");
    }
    execvp(command[0], command);
    fail(command[0]);
}

int main(int argc, char **argv)
{
    int separator = 2;
    while (separator < argc && strcmp(argv[separator], "--") != 0) {
        separator++;
    }
    if (separator + 1 >= argc) {
        fputs("usage: measure OUTPUT [NAME=VALUE ...] -- COMMAND [ARGUMENT ...]\n", stderr);
        return 125;
    }
    int output = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (output < 0) {
        fail(argv[1]);
    }

    double start = seconds_now();
    pid_t child = fork();
    if (child < 0) {
        fail("fork");
    }
    if (child == 0) {
        become(argv + separator + 1, argv + 2, output);
    }

    int status;
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0) {
        if (errno != EINTR) {
            fail("wait4");
        }
    }
    double wall = seconds_now() - start;
    int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    printf(
        "{\"wall\": %.6f, \"user\": %.6f, \"system\": %.6f, \"peak_kib\": %ld, \"exit\": %d}\n",
        wall, seconds_of(usage.ru_utime), seconds_of(usage.ru_stime), usage.ru_maxrss, code);
    return 0;
}
