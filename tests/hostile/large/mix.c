/* A short-lived big block of which little is used, and one that is used whole, by malloc or calloc,
 * over and over. Neither may make the other one dear.
 *
 * usage: mix SHORT_MIB WHOLE_MIB malloc|calloc
 * figures: round_us   processor time of a round
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    enum { ROUNDS = 300 };
    size_t short_lived = argument(argc, argv, 1) * MIB, whole = argument(argc, argv, 2) * MIB;
    bool zeroed = argv[3][0] == 'c';
    double start = cpu_s();
    for (int i = 0; i < ROUNDS; i++) {
        if (short_lived) {
            char *block = allocate(short_lived);
            block[0] = 1;
            free(block);
        }
        char *block = zeroed ? calloc(1, whole) : malloc(whole);
        REQUIRE(block != NULL && (!zeroed || block[whole / 2] == 0));
        memset(block, 1, whole);
        free(block);
    }
    figure("round_us", (cpu_s() - start) / ROUNDS * 1e6);
    conclude();
    return 0;
}
