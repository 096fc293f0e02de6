/* So many live blocks of a size just above the border of a tier; the first byte of each is written,
 * or none. All of them must be had, in little time, and they must be freed in any order.
 *
 * usage: count BLOCKS SIZE touched|untouched oldest|newest|random
 * figures: malloc_us, free_us   processor time of a call
 *          rss_mib              resident memory while all live
 *          touched_mib          what was written to
 *          mappings             while all live
 */
#include "hostile.h"

static void shuffle(char **blocks, size_t count)
{
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = random_between(0, i);
        char *block = blocks[i];
        blocks[i] = blocks[other];
        blocks[other] = block;
    }
}

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1), size = argument(argc, argv, 2);
    bool touch = argv[3][0] == 't', newest_first = argv[4][0] == 'n';
    char **blocks = allocate(count * sizeof *blocks);
    memset(blocks, 0, count * sizeof *blocks);
    double start = cpu_s();
    for (size_t i = 0; i < count; i++) {
        blocks[i] = allocate(size);
        if (touch) {
            blocks[i][0] = 1;
        }
    }
    figure("malloc_us", (cpu_s() - start) / (double)count * 1e6);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t touched = size > page ? count * page : count * size;
    figure("rss_mib", resident_mib());
    figure("touched_mib", (double)(count * sizeof *blocks + (touch ? touched : 0)) / (double)MIB);
    figure("mappings", mapping_count());
    if (argv[4][0] == 'r') {
        shuffle(blocks, count);
    }
    start = cpu_s();
    for (size_t i = 0; i < count; i++) {
        free(blocks[newest_first ? count - 1 - i : i]);
    }
    figure("free_us", (cpu_s() - start) / (double)count * 1e6);
    free(blocks);
    conclude();
    return 0;
}
