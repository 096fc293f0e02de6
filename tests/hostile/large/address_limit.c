/* Under RLIMIT_AS a block grows by realloc, with other mappings made in between, so that it has to
 * move. It must reach the limit less its own size and what the process had before.
 *
 * usage: address_limit LIMIT_MIB
 * figures: reached_mib   the longest that it became
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    enum { STEP_MIB = 64 };
    size_t limit_mib = argument(argc, argv, 1), reached = 0;
    struct rlimit limit = {limit_mib * MIB, limit_mib * MIB};
    char *block = allocate(MIB);
    free(allocate(3 * MIB));
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    for (size_t mib = STEP_MIB; mib <= limit_mib; mib += STEP_MIB) {
        char *longer = realloc(block, mib * MIB);
        if (!longer) {
            break;
        }
        block = longer;
        REQUIRE(mib == STEP_MIB || block[0] == 1);
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
