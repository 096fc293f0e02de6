/* Buffers grow in turn by a fixed step, by realloc, until they are full; then all are dropped.
 *
 * usage: steps BUFFERS STEP BYTES_MAX ROUNDS
 * figures: cpu_ms     processor time
 *          full_mib   resident memory when all are full for the last time
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1), step = argument(argc, argv, 2);
    size_t bytes_max = argument(argc, argv, 3), rounds = argument(argc, argv, 4);
    double start = cpu_s();
    for (size_t round = 0; round < rounds; round++) {
        char **buffers = calloc(count, sizeof *buffers);
        REQUIRE(buffers != NULL);
        for (size_t size = step; size <= bytes_max; size += step) {
            for (size_t i = 0; i < count; i++) {
                buffers[i] = realloc(buffers[i], size);
                REQUIRE(buffers[i] != NULL);
                memset(buffers[i] + size - step, 1, step);
            }
        }
        if (round + 1 == rounds) {
            figure("full_mib", resident_mib());
        }
        for (size_t i = 0; i < count; i++) {
            free(buffers[i]);
        }
        free(buffers);
    }
    figure("cpu_ms", (cpu_s() - start) * 1e3);
    conclude();
    return 0;
}
