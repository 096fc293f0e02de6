/* Small blocks fill most of a limit and are freed but for some, then a big block wants what they
 * had, and so on: what lies free between the small ones that live has to go each time.
 *
 * usage: returning SMALL_MIB BIG_MIB ROUNDS
 * figures: peak_mib   resident at most
 */
#include "hostile.h"

enum { SIZE = 1000, KEPT = 64 };

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1) * MIB / SIZE, big = argument(argc, argv, 2) * MIB;
    size_t rounds = argument(argc, argv, 3);
    char **blocks = allocate(count * sizeof *blocks);
    watch("memory that returns below a limit");
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            blocks[i] = memset(allocate(SIZE), 1, SIZE);
        }
        for (size_t i = 0; i < count; i++) {
            if (i % KEPT) {
                free(blocks[i]);
            }
        }
        free(memset(allocate(big), 1, big));
        for (size_t i = 0; i < count; i += KEPT) {
            free(blocks[i]);
        }
    }
    figure("peak_mib", peak_resident_mib());
    conclude();
    return 0;
}
