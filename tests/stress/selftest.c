/* Proves that the stress can fail: every planted fault must be reported for what it is.
 *
 * Each fault runs in a child of its own, for most end in an abort. Its standard error is read
 * back and searched for the words that name the fault; a clean allocator must say nothing. */
#include "faults.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAULT_OPERATIONS = 150000, FAULT_SECONDS = 60, OUTPUT_BYTES = 8192 };

static char output[OUTPUT_BYTES];

/* The child's side of one fault; does not return. */
static void run_fault(const struct fault *fault)
{
    static struct totals totals;
    struct entries entries = *entries_of_library();
    struct options options = {
        .operations = FAULT_OPERATIONS,
        .first_seed = 1,
        .seeds = 1,
        .threads = {fault->threads},
        .configurations = 1,
        .live_bytes_max = 256 << 20,
        .purge_every = 1 << 15,
    };

    faults_begin(entries_of_library());
    if (fault->plant != NULL)
        fault->plant(&entries);
    _exit(crew_run(&options, &entries, 1, 0, &totals) ? 0 : 1);
}

/* The child's side of a wrong command line; does not return. */
static void run_options(char **arguments)
{
    struct options options;
    int count = 0, status = 0;

    while (arguments[count] != NULL)
        count++;
    _exit(options_parse(&options, count, arguments, &status) ? 0 : status);
}

/* Runs one of the two above in a child; fills `output` and returns the wait status. */
static int run_child(const struct fault *fault, char **arguments)
{
    static const struct rlimit no_core;
    int ends[2], status = 0;
    size_t length = 0;
    ssize_t count;
    pid_t child;

    if (pipe(ends) != 0 || (child = fork()) < 0) {
        perror("stress: self-test");
        _exit(2);
    }
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &no_core);
        alarm(FAULT_SECONDS);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        if (fault != NULL)
            run_fault(fault);
        run_options(arguments);
    }
    close(ends[1]);
    while ((count = read(ends[0], output + length, OUTPUT_BYTES - 1 - length)) > 0)
        length += (size_t)count;
    output[length] = '\0';
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

static bool judge(const char *name, bool passed, int status)
{
    printf("%s: %s\n", passed ? "ok" : "NOT FOUND", name);
    if (!passed)
        printf("  wait status 0x%x, it said: %s\n", (unsigned)status, output);
    fflush(stdout);
    return passed;
}

static bool fault_is_found(const struct fault *fault)
{
    int status = run_child(fault, NULL);
    bool ended_well;

    if (fault->expected == NULL)
        return judge(fault->name, WIFEXITED(status) && status == 0 && output[0] == '\0', status);
    ended_well = fault->aborts ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT
                               : WIFEXITED(status) && WEXITSTATUS(status) == 1;
    return judge(fault->name, ended_well && strstr(output, fault->expected) != NULL, status);
}

int self_test(void)
{
    static char *bad[][4] = {
        {"stress", "--operations", "many"},
        {"stress", "--operations", "0"},
        {"stress", "--operations", "-5"},
        {"stress", "--operations"},
        {"stress", "--seeds", "1x"},
        {"stress", "--threads", "1,,2"},
        {"stress", "--threads", "0"},
        {"stress", "--threads", "257"},
        {"stress", "--threads", ""},
        {"stress", "--max-live-bytes", "1k"},
        {"stress", "--purge-every", "7"},
        {"stress", "--operations", "99999999999999999999"},
        {"stress", "--bogus"},
        {"stress", "17"},
    };
    unsigned wrong = 0;

    for (unsigned i = 0; i < faults_count; i++)
        wrong += !fault_is_found(&faults[i]);
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int status = run_child(NULL, bad[i]);
        char name[80];

        snprintf(
            name, sizeof(name), "refused: %s %s", bad[i][1], bad[i][2] != NULL ? bad[i][2] : "");
        wrong += !judge(
            name,
            WIFEXITED(status) && WEXITSTATUS(status) == 2 && strncmp(output, "stress: ", 8) == 0,
            status);
    }
    printf("%u wrong\n", wrong);
    return (int)wrong;
}
