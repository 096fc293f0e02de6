/* So many live blocks, each made longer or shorter once; the first and the last byte of each are
 * written. All must be had, keep what they hold, touch no more than that, and leave mappings for
 * the rest of the program.
 *
 * usage: resized BLOCKS SIZE NEW_SIZE
 * figures: rss_mib              resident memory while all live
 *          touched_mib          what was written to
 *          mappings             while all live
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1), size = argument(argc, argv, 2);
    size_t new_size = argument(argc, argv, 3), kept = size < new_size ? size : new_size;
    char **blocks = allocate(count * sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = allocate(size);
        blocks[i][0] = blocks[i][kept - 1] = (char)(i % 100 + 1);
    }
    for (size_t i = 0; i < count; i++) {
        char *resized = realloc(blocks[i], new_size);
        REQUIRE(resized != NULL);
        blocks[i] = resized;
        REQUIRE(resized[0] == (char)(i % 100 + 1) && resized[kept - 1] == resized[0]);
        resized[new_size - 1] = resized[0];
    }
    size_t written = count * (sizeof *blocks + 3 * (size_t)sysconf(_SC_PAGESIZE));
    figure("rss_mib", resident_mib());
    figure("touched_mib", (double)written / (double)MIB);
    figure("mappings", mapping_count());
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
    free(blocks);
    conclude();
    return 0;
}
