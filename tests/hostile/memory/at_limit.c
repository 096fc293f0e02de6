/* A cache fills the memory that the process may have, so that free memory goes back, and nothing
 * can be given that would be enough. Meanwhile blocks come and go: no call may work through the
 * heap again and again.
 *
 * usage: at_limit FILLED_MIB SECONDS
 *
 * Blocks of 16 to 900 bytes fill FILLED_MIB, of which each 16th is freed. HAKMEM_LIMIT_MIB of the
 * environment is the limit.
 *
 * figures: slow_calls   that took more than 1 ms of the thread's processor time
 */
#include "hostile.h"

enum { HOLES = 16, SLOTS = 20000, CALLS = 1000 };

int main(int argc, char **argv)
{
    size_t filled = argument(argc, argv, 1) * MIB, count = 0;
    double end = wall_s() + (double)argument(argc, argv, 2), slow = 0;
    static char *slots[SLOTS];
    char **blocks = allocate(filled / 16 * sizeof *blocks);
    watch("calls beside a cache that fills the limit");
    for (size_t bytes = 0; bytes < filled; count++) {
        size_t size = random_between(16, 900);
        blocks[count] = memset(allocate(size), 1, size);
        bytes += size;
    }
    for (size_t i = 0; i < count; i += HOLES) {
        free(blocks[i]);
    }
    while (wall_s() < end) {
        for (int i = 0; i < CALLS; i++) {
            char **slot = &slots[random_between(0, SLOTS - 1)];
            double begin = thread_cpu_s();
            free(*slot);
            *slot = malloc(random_between(16, 3000));
            slow += thread_cpu_s() - begin > 0.001;
            REQUIRE(*slot != NULL);
            **slot = 1;
        }
    }
    figure("slow_calls", slow);
    conclude();
    return 0;
}
