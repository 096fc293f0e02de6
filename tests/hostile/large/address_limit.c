/* Under RLIMIT_AS a block grows by realloc, with other mappings made in between, so that it has to
 * move. It must reach the limit less its own size and what the process had before; FREED_MIB of
 * that were small blocks, and are free.
 *
 * usage: address_limit LIMIT_MIB STEP_MIB FREED_MIB
 * figures: reached_mib   the longest that it became
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    enum { SIZE = 1000, BLOCKS_MAX = 1 << 20 };
    size_t limit_mib = argument(argc, argv, 1), step_mib = argument(argc, argv, 2);
    size_t freed = argument(argc, argv, 3) * MIB / SIZE, reached = 0;
    static char *blocks[BLOCKS_MAX];
    struct rlimit limit = {limit_mib * MIB, limit_mib * MIB};
    char *block = allocate(step_mib * MIB);
    free(allocate(3 * MIB));
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0 && freed <= BLOCKS_MAX);
    for (size_t i = 0; i < freed; i++) {
        blocks[i] = memset(allocate(SIZE), 1, SIZE);
    }
    for (size_t i = 0; i < freed; i++) {
        free(blocks[i]);
    }
    for (size_t mib = step_mib; mib <= limit_mib; mib += step_mib) {
        char *longer = realloc(block, mib * MIB);
        if (!longer) {
            break;
        }
        block = longer;
        REQUIRE(mib == step_mib || block[0] == 1);
        block[0] = 1;
        reached = mib;
        /* What the system puts behind the block keeps it from growing in place. */
        mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    free(block);
    figure("reached_mib", (double)reached);
    conclude();
    return 0;
}
