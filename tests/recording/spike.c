/* A program whose memory grows by 400 MiB and falls again, in one way or another. Prints the
 * highest RSS that the kernel counted, in KiB.
 *
 * usage: spike MODE
 */
#include "program.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const size_t spike_bytes = (size_t)400 << 20;

static void touch_and_free(size_t bytes)
{
    char *block = malloc(bytes);
    REQUIRE(block != NULL);
    memset(block, 1, bytes);
    free(block);
}

static void one(void)
{
    touch_and_free(spike_bytes);
}

static void small(void)
{
    void **newest = NULL;
    for (size_t i = 0; i < spike_bytes / 64; i++) {
        void **block = malloc(64);
        REQUIRE(block != NULL);
        *block = newest;
        newest = block;
    }
    while (newest) {
        void **next = *newest;
        free(newest);
        newest = next;
    }
}

static void mapped(void)
{
    touch_and_free(100000);
    char *own = mmap(NULL, spike_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(own != MAP_FAILED);
    memset(own, 1, spike_bytes);
    munmap(own, spike_bytes);
}

static void *in_thread(void *unused)
{
    touch_and_free(spike_bytes / 8);
    return unused;
}

static void threads(void)
{
    pthread_t thread[8];
    for (size_t i = 0; i < 8; i++)
        REQUIRE(pthread_create(&thread[i], NULL, in_thread, NULL) == 0);
    for (size_t i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
}

/* Of the child alone. */
static void forked(void)
{
    pid_t child = fork();
    if (child > 0) {
        REQUIRE(wait(NULL) == child);
        _exit(0);
    }
    one();
}

static void print_highest(void)
{
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    REQUIRE(file != NULL);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            printf("%ld\n", strtol(line + 6, NULL, 10));
    fclose(file);
    fflush(stdout);
}

static void killed(void)
{
    one();
    touch_and_free(1000000);
    print_highest();
    raise(SIGKILL);
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {{"one", one},       {"small", small},
                                        {"mapped", mapped}, {"threads", threads},
                                        {"forked", forked}, {"killed", killed}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (argc > 1 && strcmp(modes[i].name, argv[1]) == 0)
            modes[i].run();
    print_highest();
    return 0;
}
