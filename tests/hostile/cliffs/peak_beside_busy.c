/* A thread frees a peak and sleeps; another one is busy with small blocks all the time. What the
 * first one freed must go back to the system.
 *
 * usage: peak_beside_busy PEAK_MIB LOW HIGH MS
 * figures: left_mib   resident memory MS after the peak was freed
 */
#include "hostile.h"

#include <stdatomic.h>

static atomic_bool stop;

static void *busy(void *unused)
{
    char *blocks[64] = {NULL};
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        size_t at = random_between(0, 63);
        free(blocks[at]);
        blocks[at] = allocate(random_between(16, 512));
        blocks[at][0] = 1;
    }
    return unused;
}

int main(int argc, char **argv)
{
    size_t peak = argument(argc, argv, 1) * MIB, low = argument(argc, argv, 2);
    size_t high = argument(argc, argv, 3), count = peak / ((low + high) / 2);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, busy, NULL) == 0);
    char **blocks = allocate(count * sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        size_t size = random_between(low, high);
        blocks[i] = allocate(size);
        memset(blocks[i], 1, size);
    }
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
    sleep_ms((unsigned)argument(argc, argv, 4));
    figure("left_mib", resident_mib());
    atomic_store(&stop, true);
    REQUIRE(pthread_join(thread, NULL) == 0);
    free(blocks);
    conclude();
    return 0;
}
