/* Measures what preloading a library costs a program that does nothing: starts it with and
 * without the library in turn and prints the least time and the median of peak resident memory.
 *
 * Linked statically, because a child's peak starts at what its parent had when it was started:
 * this program must be smaller than what it measures, and says so when it is not.
 *
 * usage: perf_startup LIBRARY RUNS PROGRAM
 * Prints bare_ns=N preloaded_ns=N bare_kib=N preloaded_kib=N.
 */
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define MAX_RUNS 1000

struct sample {
    long nanoseconds;
    long peak_kib;
};

static int64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Runs the program once; returns false when it does not end with status 0. */
static int measure(char *program, char **environment, struct sample *sample)
{
    char *arguments[] = {program, NULL};
    struct rusage usage;
    pid_t child;
    int status;
    int64_t start = nanoseconds_now();
    if (posix_spawn(&child, program, NULL, NULL, arguments, environment) != 0) {
        return 0;
    }
    if (wait4(child, &status, 0, &usage) != child || status != 0) {
        return 0;
    }
    sample->nanoseconds = (long)(nanoseconds_now() - start);
    sample->peak_kib = usage.ru_maxrss;
    return 1;
}

static int compare_time(const void *left, const void *right)
{
    const struct sample *a = left;
    const struct sample *b = right;
    return (a->nanoseconds > b->nanoseconds) - (a->nanoseconds < b->nanoseconds);
}

static int compare_peak(const void *left, const void *right)
{
    const struct sample *a = left;
    const struct sample *b = right;
    return (a->peak_kib > b->peak_kib) - (a->peak_kib < b->peak_kib);
}

/* The least time: what else the machine does makes a run longer. */
static struct sample typical(struct sample *samples, size_t count)
{
    struct sample typical;
    qsort(samples, count, sizeof *samples, compare_time);
    typical.nanoseconds = samples[0].nanoseconds;
    qsort(samples, count, sizeof *samples, compare_peak);
    typical.peak_kib = samples[count / 2].peak_kib;
    return typical;
}

/* What a child starts with. Not ru_maxrss, which counts what this process inherited likewise. */
static long own_peak_kib(void)
{
    char line[256];
    long peak = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            peak = strtol(line + 6, NULL, 10);
        }
    }
    if (status != NULL) {
        fclose(status);
    }
    return peak;
}

int main(int argc, char **argv)
{
    static struct sample bare[MAX_RUNS];
    static struct sample preloaded[MAX_RUNS];
    static char preload[4096];
    char path[] = "PATH=/usr/bin:/bin";
    char *bare_environment[] = {path, NULL};
    char *preloaded_environment[] = {path, preload, NULL};
    size_t runs = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    if (runs == 0 || runs > MAX_RUNS) {
        fprintf(stderr, "usage: perf_startup LIBRARY RUNS PROGRAM\n");
        return 2;
    }
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[1]);
    for (size_t run = 0; run < runs; run++) {
        if (!measure(argv[3], bare_environment, &bare[run]) ||
            !measure(argv[3], preloaded_environment, &preloaded[run])) {
            fprintf(stderr, "perf_startup: %s did not run\n", argv[3]);
            return 1;
        }
    }
    long own_kib = own_peak_kib();
    struct sample without = typical(bare, runs);
    struct sample with = typical(preloaded, runs);
    if (own_kib < 0 || own_kib >= without.peak_kib) {
        fprintf(stderr, "perf_startup: too large itself to measure (%ld KiB)\n", own_kib);
        return 1;
    }
    printf(
        "bare_ns=%ld preloaded_ns=%ld bare_kib=%ld preloaded_kib=%ld\n", without.nanoseconds,
        with.nanoseconds, without.peak_kib, with.peak_kib);
    return 0;
}
