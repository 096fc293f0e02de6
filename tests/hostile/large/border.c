/* A used block grows and shrinks by realloc, to and fro across the border of a tier. Its contents
 * must stay, and a step must not cost much more than under the C library.
 *
 * usage: border LOW HIGH ROUNDS
 * figures: step_us   processor time of a realloc
 *          faults    page faults of one
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    size_t low = argument(argc, argv, 1), high = argument(argc, argv, 2);
    size_t rounds = argument(argc, argv, 3);
    unsigned char *block = allocate(high);
    memset(block, 0x5a, high);
    double faults = page_faults(), start = cpu_s();
    for (size_t i = 0; i < rounds; i++) {
        size_t size = i % 2 ? high : low;
        block = realloc(block, size);
        REQUIRE(block != NULL && block[0] == 0x5a && block[low - 1] == 0x5a);
        memset(block + low, 0x5a, size - low);
    }
    figure("step_us", (cpu_s() - start) / (double)rounds * 1e6);
    figure("faults", (page_faults() - faults) / (double)rounds);
    for (size_t i = 0; i < low; i++) {
        REQUIRE(block[i] == 0x5a);
    }
    free(block);
    conclude();
    return 0;
}
