/* Blocks come and go of which the program never writes the first word.
 *
 * usage: unwritten ROUNDS BLOCKS SIZE
 * figures: round_ns   processor time of a round
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    enum { BLOCKS_MAX = 4096 };
    static char *blocks[BLOCKS_MAX];
    size_t rounds = argument(argc, argv, 1), count = argument(argc, argv, 2);
    size_t size = argument(argc, argv, 3);
    REQUIRE(count <= BLOCKS_MAX);
    double start = cpu_s();
    for (size_t i = 0; i < rounds; i++) {
        char **place = &blocks[i % count];
        free(*place);
        *place = allocate(size);
        (*place)[size - 1] = 1;
    }
    figure("round_ns", (cpu_s() - start) / (double)rounds * 1e9);
    conclude();
    return 0;
}
