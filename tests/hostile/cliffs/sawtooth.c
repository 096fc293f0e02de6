/* A buffer that grows in steps by realloc, and begins anew: as that of a parser or a log does. The
 * first byte is written at each step, and none that is far behind it.
 *
 * usage: sawtooth MOST_KIB STEPS ROUNDS
 * figures: step_us     processor time of a realloc
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    size_t most = argument(argc, argv, 1) * KIB, steps = argument(argc, argv, 2);
    size_t rounds = argument(argc, argv, 3);
    char *buffer = NULL;
    double start = cpu_s();
    for (size_t round = 0; round < rounds; round++) {
        for (size_t step = 1; step <= steps; step++) {
            buffer = realloc(buffer, most / steps * step);
            REQUIRE(buffer != NULL);
            buffer[0] = 1;
        }
    }
    figure("step_us", (cpu_s() - start) / (double)(rounds * steps) * 1e6);
    free(buffer);
    conclude();
    return 0;
}
