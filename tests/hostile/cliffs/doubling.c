/* A buffer grows by doubling, as std::vector does: allocate, copy, free; then it is dropped.
 *
 * usage: doubling KIB_MAX ROUNDS
 * figures: cpu_ms    processor time
 *          faults    page faults
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    size_t bytes_max = argument(argc, argv, 1) * KIB, rounds = argument(argc, argv, 2);
    double faults = page_faults(), start = cpu_s();
    for (size_t round = 0; round < rounds; round++) {
        size_t size = 64;
        char *buffer = allocate(size);
        memset(buffer, 1, size);
        for (; size < bytes_max; size *= 2) {
            char *longer = allocate(size * 2);
            memcpy(longer, buffer, size);
            memset(longer + size, 1, size);
            free(buffer);
            buffer = longer;
        }
        free(buffer);
    }
    figure("cpu_ms", (cpu_s() - start) * 1e3);
    figure("faults", page_faults() - faults);
    conclude();
    return 0;
}
