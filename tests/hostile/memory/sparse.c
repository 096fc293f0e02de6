/* Blocks of which only the end is used: stacks of coroutines, arenas, ring buffers. What is not
 * touched must cost nothing, with huge pages or without.
 *
 * usage: sparse BLOCKS SIZE TOUCHED
 * figures: rss_mib       resident memory
 *          touched_mib   what was written to, in whole pages
 *          cpu_ms        processor time
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1), size = argument(argc, argv, 2);
    size_t touched = argument(argc, argv, 3), page = (size_t)sysconf(_SC_PAGESIZE);
    double start = cpu_s(), written = 0;
    for (size_t i = 0; i < count; i++) {
        char *block = allocate(size);
        memset(block + size - touched, 1, touched);
        size_t first = (size_t)(block + size - touched) / page;
        written += (double)(((size_t)(block + size - 1) / page - first + 1) * page);
    }
    figure("cpu_ms", (cpu_s() - start) * 1e3);
    figure("rss_mib", resident_mib());
    figure("touched_mib", written / (double)MIB);
    conclude();
    _exit(0);
}
