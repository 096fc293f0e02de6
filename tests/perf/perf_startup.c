/* Measures what preloading a library costs a program that does nothing: starts it with and
 * without the library in turn and prints the least times.
 *
 * usage: perf_startup LIBRARY RUNS PROGRAM
 * Prints bare_ns=N preloaded_ns=N.
 */
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

static int64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Runs the program once, and lowers the least time of all runs; returns false when it does not end
 * with status 0. What else the machine does makes a run longer. */
static int measure(char *program, char **environment, int64_t *least)
{
    char *arguments[] = {program, NULL};
    pid_t child;
    int status;
    int64_t start = nanoseconds_now();
    if (posix_spawn(&child, program, NULL, NULL, arguments, environment) != 0) {
        return 0;
    }
    if (waitpid(child, &status, 0) != child || status != 0) {
        return 0;
    }
    int64_t time = nanoseconds_now() - start;
    *least = time < *least ? time : *least;
    return 1;
}

int main(int argc, char **argv)
{
    static char preload[4096];
    char path[] = "PATH=/usr/bin:/bin";
    char *bare_environment[] = {path, NULL};
    char *preloaded_environment[] = {path, preload, NULL};
    size_t runs = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    if (runs == 0) {
        fprintf(stderr, "usage: perf_startup LIBRARY RUNS PROGRAM\n");
        return 2;
    }
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[1]);
    int64_t bare = INT64_MAX, preloaded = INT64_MAX;
    for (size_t run = 0; run < runs; run++) {
        if (!measure(argv[3], bare_environment, &bare) ||
            !measure(argv[3], preloaded_environment, &preloaded)) {
            fprintf(stderr, "perf_startup: %s did not run\n", argv[3]);
            return 1;
        }
    }
    printf("bare_ns=%lld preloaded_ns=%lld\n", (long long)bare, (long long)preloaded);
    return 0;
}
