/* Small tools that run for a moment: the program starts itself again and again, and every child
 * makes some hundred allocations and ends. What counts is how soon an allocator is ready, and what
 * it costs to load and to leave.
 *
 * A child sends what it recorded to its parent through its standard output. */
#include "lab.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    uint64_t processes, allocations, child;
} settings;

static const struct lab_flag flags[] = {
    {.name = "processes",
     .kind = LAB_COUNT,
     .variable = &settings.processes,
     .standard = 400,
     .least = 1,
     .most = 1000000,
     .unit = "processes",
     .help = "processes to start, one after the other"},
    {.name = "allocations",
     .kind = LAB_COUNT,
     .variable = &settings.allocations,
     .standard = 300,
     .least = 1,
     .most = 1000000,
     .unit = "blocks",
     .help = "blocks that each process allocates; it frees half of them"},
    {.name = "child",
     .kind = LAB_COUNT,
     .variable = &settings.child,
     .standard = 0,
     .least = 0,
     .most = 1000000,
     .help = "for the program itself: the number of the process, 0 for the one that starts them"},
};

extern char **environ;

/* ---- The child ------------------------------------------------------------------------------- */

/* Strings and nodes mostly, and now and then a buffer. */
static uint32_t child_size(uint64_t draw)
{
    return (uint32_t)(draw % 32 ? 16 + lab_below(draw, 240) : 4096 + lab_below(draw, 61440));
}

/* As small tools do, it leaves half of its blocks to the end of the process. */
static void child_main(void)
{
    struct lab_recorder *recorder = lab_recorder_create();
    struct lab_random random = lab_random_stream(settings.child);
    struct lab_block block = {NULL, 0, 0};
    for (uint64_t i = 0; i < settings.allocations; i++) {
        uint64_t draw = lab_random_next(&random);
        uint32_t size = child_size(draw);
        struct lab_block previous = block;
        lab_block_allocate(recorder, &block, size, (uint32_t)draw);
        lab_count_size(recorder, size, 1);
        if (i % 2 == 1) {
            lab_block_free(recorder, &previous);
        }
    }
    recorder->operations += settings.allocations + settings.allocations / 2;
    lab_recorder_send(recorder, STDOUT_FILENO);
}

/* ---- The parent ------------------------------------------------------------------------------ */

static char program[PATH_MAX]; /* the path of this program */

static void find_program(void)
{
    ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    if (length <= 0 || length == sizeof program) {
        lab_fail("cannot read /proc/self/exe, so the program cannot start itself");
    }
}

static void require_success(int error, const char *what)
{
    if (error) {
        lab_fail("cannot %s: %s", what, strerror(error));
    }
}

/* Starts this program with the arguments of its children and adds what the child recorded. */
static void run_child(struct lab_recorder *recorder, char *const *arguments)
{
    int ends[2];
    require_success(pipe2(ends, O_CLOEXEC) ? errno : 0, "make a pipe");
    posix_spawn_file_actions_t actions;
    require_success(posix_spawn_file_actions_init(&actions), "prepare a process");
    require_success(
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO), "prepare a process");
    pid_t child;
    require_success(
        posix_spawn(&child, program, &actions, NULL, arguments, environ), "start a process");
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    lab_recorder_receive(recorder, ends[0]);
    close(ends[0]);
    int status;
    while (waitpid(child, &status, 0) < 0) {
        require_success(errno == EINTR ? 0 : errno, "wait for a process");
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        lab_fail("a process ended with wait status %d", status);
    }
}

static void work(struct lab_worker *worker)
{
    char number[24], allocations[24], seed[24];
    char *arguments[] = {"startup", "--child", number, "--allocations", allocations, "--seed",
                         seed,      NULL,      NULL};
    snprintf(allocations, sizeof allocations, "%llu", (unsigned long long)settings.allocations);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)lab_seed());
    if (worker->recorder.latency) {
        arguments[7] = "--latency";
    }
    find_program();
    lab_clock_start(worker);
    for (uint64_t i = 1; i <= settings.processes; i++) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)i);
        run_child(&worker->recorder, arguments);
    }
    uint64_t elapsed_ns = lab_clock_stop(worker);
    lab_figure((double)elapsed_ns / 1e3 / (double)settings.processes, "process_us");
}

int main(int argc, char **argv)
{
    lab_begin(
        "startup", "Starts processes that make some hundred allocations and end.", flags,
        LAB_LENGTH(flags), argc, argv);
    if (settings.child > 0) {
        child_main();
        return 0;
    }
    lab_run(1, work);
    return lab_report();
}
