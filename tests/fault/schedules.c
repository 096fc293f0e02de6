/* Every mmap, munmap, mremap, madvise and mprotect of the allocator fails: behaviour 39.
 *
 * usage: fault_schedules each STRIDE [WORKLOAD]
 *        fault_schedules random COUNT [WORKLOAD]
 *        fault_schedules replay WORKLOAD once|ever CALL NUMBER
 *        fault_schedules replay WORKLOAD random SEED
 *
 * each: for each kind of call, the 1st, (1 + STRIDE)th .. call fails, once and for ever, until the
 * workload goes through without reaching it. random: so many random schedules for each workload.
 * replay: one trial, as the report of a failure names it.
 */
#include <stdio.h>

#include "runtime_support.h"
#include "trial.h"

static struct trial_result expected[WORKLOADS];

static struct {
    unsigned trials, failed;
    uint64_t failures, refused;
} totals;

static const char *const mode_names[] = {"none", "once", "ever", "random"};

static void print(const char *text)
{
    ssize_t written = write(STDOUT_FILENO, text, strlen(text));
    (void)written;
}

static void report_failure(const struct workload *workload, const struct schedule *schedule)
{
    char line[160];
    const char *call = schedule->mode == SCHEDULE_ONCE || schedule->mode == SCHEDULE_EVER
                           ? schedule_call_names[schedule->call]
                           : "";
    snprintf(
        line, sizeof line, "FAILED: fault_schedules replay %s %s %s%s%llu\n", workload->name,
        mode_names[schedule->mode], call, *call ? " " : "", (unsigned long long)schedule->number);
    print(line);
}

/* True when the schedule let a call fail. */
static bool try_schedule(unsigned workload, const struct schedule *schedule)
{
    struct trial_result result;
    trial_run(&workloads[workload], schedule, &expected[workload], &result);
    totals.trials++;
    totals.failures += result.failures;
    totals.refused += result.refused;
    if (!result.ok) {
        totals.failed++;
        report_failure(&workloads[workload], schedule);
    }
    return result.failures != 0;
}

/* What each workload holds at its end when nothing fails: the measure of all other trials. */
static bool measure(unsigned workload)
{
    const struct schedule none = {.mode = SCHEDULE_NONE};
    trial_run(&workloads[workload], &none, NULL, &expected[workload]);
    if (expected[workload].ok && !expected[workload].refused)
        return true;
    report_failure(&workloads[workload], &none);
    return false;
}

/* After so many failures there is nothing new to be learned. */
enum { FAILED_MAX = 50 };

static void each(unsigned workload, uint64_t stride)
{
    struct schedule schedule;
    for (schedule.mode = SCHEDULE_ONCE; schedule.mode <= SCHEDULE_EVER; schedule.mode++)
        for (schedule.call = 0; schedule.call < FAULT_KINDS; schedule.call++)
            for (schedule.number = 1; try_schedule(workload, &schedule);) {
                if (totals.failed > FAILED_MAX)
                    return;
                schedule.number += stride;
            }
}

static void random_schedules(unsigned workload, uint64_t count)
{
    struct schedule schedule = {.mode = SCHEDULE_RANDOM};
    for (schedule.number = 1; schedule.number <= count; schedule.number++)
        if (totals.failed <= FAILED_MAX)
            try_schedule(workload, &schedule);
}

/* Number of the workload; WORKLOADS: there is none of that name. */
static unsigned find_workload(const char *name)
{
    unsigned workload = 0;
    while (workload < WORKLOADS && strcmp(workloads[workload].name, name) != 0)
        workload++;
    return workload;
}

static bool parse_schedule(char **words, struct schedule *schedule)
{
    if (strcmp(words[0], "random") == 0 && words[1]) {
        *schedule = (struct schedule){SCHEDULE_RANDOM, 0, strtoull(words[1], NULL, 10)};
        return true;
    }
    schedule->mode = strcmp(words[0], "ever") == 0 ? SCHEDULE_EVER : SCHEDULE_ONCE;
    for (schedule->call = 0; words[1] && words[2] && schedule->call < FAULT_KINDS; schedule->call++)
        if (strcmp(words[1], schedule_call_names[schedule->call]) == 0) {
            schedule->number = strtoull(words[2], NULL, 10);
            return true;
        }
    return false;
}

static int usage(void)
{
    say("usage: fault_schedules each STRIDE [WORKLOAD]\n"
        "       fault_schedules random COUNT [WORKLOAD]\n"
        "       fault_schedules replay WORKLOAD once|ever CALL NUMBER\n"
        "       fault_schedules replay WORKLOAD random SEED\n");
    return 2;
}

static int replay(char **words)
{
    struct schedule schedule;
    unsigned workload = find_workload(words[0]);
    if (workload == WORKLOADS || !words[1] || !parse_schedule(words + 1, &schedule))
        return usage();
    if (measure(workload))
        try_schedule(workload, &schedule);
    return totals.failed || !expected[workload].ok;
}

static void print_totals(void)
{
    char line[200];
    snprintf(
        line, sizeof line,
        "%u trials, %u failed; %llu system calls were refused, and %llu allocations because of "
        "it\n",
        totals.trials, totals.failed, (unsigned long long)totals.failures,
        (unsigned long long)totals.refused);
    print(line);
}

int main(int argc, char **argv)
{
    bool is_random = argc > 2 && strcmp(argv[1], "random") == 0;
    uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    if (argc > 3 && strcmp(argv[1], "replay") == 0)
        return replay(argv + 2);
    if (argc < 3 || argc > 4 || !number || (!is_random && strcmp(argv[1], "each") != 0))
        return usage();
    unsigned only = argc == 4 ? find_workload(argv[3]) : WORKLOADS;
    if (argc == 4 && only == WORKLOADS)
        return usage();
    bool measured = true;
    for (unsigned workload = 0; workload < WORKLOADS; workload++) {
        if (only != WORKLOADS && only != workload)
            continue;
        if (!measure(workload))
            measured = false;
        else
            (is_random ? random_schedules : each)(workload, number);
    }
    print_totals();
    return !measured || totals.failed || !totals.failures || !totals.refused;
}
