/* Usage: PROGRAM [--list] [--limit EXECUTIONS] [--brief] [SCENARIO...]
 *
 * Explores the scenarios, or all of them, and prints a line for each; --brief leaves out the steps
 * that led to a failure and ends with the first one. Exit status 0: none failed;
 * 1: one did, and the report says how; 77: a search was cut short by the limit.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/report.h"
#include "engine/search.h"

extern const struct scenario *const __start_scenarios[], *const __stop_scenarios[];

static const struct scenario *running;
static bool brief;

const char *report_place(const void *code)
{
    static char buffers[4][256];
    static unsigned turn;
    char *buffer = buffers[turn++ % 4], command[64];
    snprintf(command, sizeof command, "addr2line -se /proc/%d/exe %p", getpid(), code);
    FILE *pipe = popen(command, "r");
    if (!pipe || !fgets(buffer, sizeof buffers[0], pipe))
        snprintf(buffer, sizeof buffers[0], "%p", code);
    if (pipe)
        pclose(pipe);
    buffer[strcspn(buffer, " \n")] = '\0';
    return buffer;
}

static void print_step(const struct op *op, int thread, uint64_t note)
{
    printf(
        "    thread %d  %-9s %14p  %-14llx %s\n", thread, op->name, op->object,
        (unsigned long long)note, report_place(op->code));
}

void search_report_wait(int thread, const struct op *op, bool sleeps)
{
    printf(
        "    thread %d %s %p at %s\n", thread, sleeps ? "sleeps on" : "waits for", op->object,
        report_place(op->code));
}

void model_fail(const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (running && running->must_fail && strstr(message, running->must_fail)) {
        printf("%-28s fails as it should: %s\n", running->name, message);
        fflush(stdout);
        _exit(0);
    }
    printf("FAILED: %s: %s\n", running ? running->name : "start", message);
    if (exploring && !brief) {
        printf("    by thread %d, after these steps:\n", current);
        search_print_trace(print_step);
    }
    fflush(stdout);
    _exit(1);
}

void report_race(
    const void *word, const void *old, bool old_writes, int old_thread, const void *new,
    bool new_writes)
{
    model_fail(
        "data race at %p: thread %d %s at %s, thread %d %s at %s", word, old_thread,
        old_writes ? "wrote" : "read", report_place(old), current, new_writes ? "writes" : "reads",
        report_place(new));
}

static int check(const struct scenario *scenario, uint64_t limit)
{
    running = scenario;
    fiber_init();
    system_init();
    if (scenario->prepare)
        scenario->prepare();
    struct search_result result = search_run(scenario, limit);
    if (scenario->must_fail)
        model_fail("it should have failed with: %s", scenario->must_fail);
    if (result.complete && scenario->executions && result.executions != scenario->executions)
        model_fail(
            "%llu executions instead of %llu", (unsigned long long)result.executions,
            (unsigned long long)scenario->executions);
    if (scenario->conclude)
        scenario->conclude();
    printf(
        "%-28s %10llu executions %12llu steps%s\n", scenario->name,
        (unsigned long long)result.executions, (unsigned long long)result.steps,
        !result.complete            ? ", cut short"
        : scenario->preemptions_max ? ", few preemptions"
                                    : "");
    fflush(stdout);
    return result.complete ? 0 : 77;
}

/* In a process of its own, so that each begins with a core that was never used; it ends with this
 * one, however that ends. */
static int check_apart(const struct scenario *scenario, uint64_t limit)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(check(scenario, limit));
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        printf("FAILED: %s: the checker ended with status %d\n", scenario->name, status);
        return 1;
    }
    return WEXITSTATUS(status);
}

static bool is_wanted(const struct scenario *scenario, char **names)
{
    for (char **wanted = names; *wanted; wanted++)
        if (strcmp(*wanted, scenario->name) == 0)
            return true;
    return !*names;
}

int main(int argc, char **argv)
{
    uint64_t limit = 0;
    bool list = false;
    int i = 1, worst = 0;
    for (; i < argc && argv[i][0] == '-'; i++) {
        list |= strcmp(argv[i], "--list") == 0;
        brief |= strcmp(argv[i], "--brief") == 0;
        if (strcmp(argv[i], "--limit") == 0 && i + 1 < argc)
            limit = strtoull(argv[++i], NULL, 10);
    }
    const struct scenario *const *scenario = __start_scenarios;
    for (; scenario < __stop_scenarios; scenario++) {
        if (!is_wanted(*scenario, argv + i))
            continue;
        if (list) {
            printf("%s\t%s\n", (*scenario)->name, (*scenario)->about);
            continue;
        }
        int status = check_apart(*scenario, limit);
        worst = status == 1 || worst == 0 ? status : worst;
        if (status == 1 && brief)
            break;
    }
    return worst;
}
