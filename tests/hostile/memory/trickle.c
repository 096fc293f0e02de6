/* A peak is freed, and the program becomes one that allocates a few times a second. Soon most of
 * the peak must have gone back to the system.
 *
 * usage: trickle PEAK_MIB SIZE INTERVAL_MS SECONDS [CALLS [WARM]]
 * CALLS, 1 if not given, come at once, and then a pause. WARM pairs come right before the peak is
 * freed and after: so a thread has all that later calls ask for at hand.
 * figures: peak_mib   resident memory at the peak
 *          left_mib   SECONDS after all was freed
 */
#include "hostile.h"

static void call(void)
{
    char *block = allocate(100);
    block[0] = 1;
    free(block);
}

int main(int argc, char **argv)
{
    size_t peak = argument(argc, argv, 1) * MIB, size = argument(argc, argv, 2);
    unsigned interval_ms = (unsigned)argument(argc, argv, 3);
    double seconds = (double)argument(argc, argv, 4);
    size_t calls = argc > 5 ? argument(argc, argv, 5) : 1;
    size_t count = peak / size, warm = argc > 6 ? argument(argc, argv, 6) : 0;
    char **blocks = allocate(count * sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = allocate(size);
        memset(blocks[i], 1, size);
    }
    figure("peak_mib", resident_mib());
    for (size_t i = 0; i < warm; i++)
        call();
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
    for (size_t i = 0; i < warm; i++)
        call();
    if (!warm)
        free(blocks);
    for (double end = wall_s() + seconds; wall_s() < end;) {
        sleep_ms(interval_ms);
        for (size_t i = 0; i < calls; i++)
            call();
    }
    figure("left_mib", resident_mib());
    conclude();
    return 0;
}
