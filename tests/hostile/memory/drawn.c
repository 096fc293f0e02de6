/* Surfaces of renderers: zeroed blocks of which a part is drawn, anywhere, and that are freed.
 * Zeroing must cost neither a fault for each page that is drawn, nor memory for others.
 *
 * usage: drawn THREADS SIZE_MIN SIZE_MAX PERCENT ROUNDS
 * figures: cpu_ms   processor time
 *          faults   page faults
 *          peak_mib most resident memory
 */
#include "hostile.h"

static size_t size_min, size_max, percent, rounds;

static uint64_t next_of(uint64_t *random)
{
    *random = *random * 6364136223846793005 + 1442695040888963407;
    return *random >> 33;
}

static void *draw(void *argument)
{
    uint64_t random = (uintptr_t)argument * 77;
    for (size_t i = 0; i < rounds; i++) {
        size_t size = size_min + next_of(&random) % (size_max - size_min + 1);
        size_t length = size * percent / 100;
        size_t from = next_of(&random) % (size - length + 1);
        unsigned char *surface = calloc(1, size);
        REQUIRE(surface != NULL);
        for (size_t at = 0; at < size; at += 4096 * 7) {
            REQUIRE(surface[at] == 0);
        }
        for (size_t at = from; at < from + length; at += 64) {
            REQUIRE(surface[at]++ == 0);
        }
        free(surface);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    enum { THREADS_MAX = 16 };
    size_t threads = argument(argc, argv, 1);
    size_min = argument(argc, argv, 2);
    size_max = argument(argc, argv, 3);
    percent = argument(argc, argv, 4);
    rounds = argument(argc, argv, 5);
    pthread_t thread[THREADS_MAX];
    REQUIRE(threads <= THREADS_MAX);
    double start = cpu_s();
    for (size_t i = 0; i < threads; i++) {
        REQUIRE(pthread_create(&thread[i], NULL, draw, (void *)(i + 1)) == 0);
    }
    for (size_t i = 0; i < threads; i++) {
        REQUIRE(pthread_join(thread[i], NULL) == 0);
    }
    char status[4096];
    read_text("/proc/self/status", status, sizeof status);
    const char *peak = strstr(status, "VmHWM:");
    REQUIRE(peak != NULL);
    figure("cpu_ms", (cpu_s() - start) * 1e3);
    figure("faults", page_faults());
    figure("peak_mib", (double)strtoul(peak + 6, NULL, 10) / 1024);
    conclude();
    return 0;
}
