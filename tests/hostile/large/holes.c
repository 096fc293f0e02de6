/* Untouched blocks fill a heap, of each STEP of them all but KEEP are freed, and blocks of another
 * size are asked for. No call may take long, however large the heap and whatever its holes.
 *
 * usage: holes BLOCKS SIZE STEP KEEP MORE MORE_SIZE
 * figures: malloc_us, free_us   processor time of a call while the heap grows, while holes come
 *          more_us              of one of the later calls
 *          worst_us             of the worst of these
 *          rss_mib              resident memory at the end, without the program's own
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1), size = argument(argc, argv, 2);
    size_t step = argument(argc, argv, 3), keep = argument(argc, argv, 4);
    size_t more = argument(argc, argv, 5), more_size = argument(argc, argv, 6);
    char **blocks = allocate(count * sizeof *blocks);
    memset(blocks, 0, count * sizeof *blocks);
    double before = resident_mib(), start = cpu_s();
    for (size_t i = 0; i < count; i++) {
        blocks[i] = allocate(size);
    }
    figure("malloc_us", (cpu_s() - start) / (double)count * 1e6);
    start = cpu_s();
    for (size_t i = 0; i < count; i++) {
        if (i % step >= keep) {
            free(blocks[i]);
        }
    }
    figure("free_us", (cpu_s() - start) / (double)count * 1e6);
    double worst = 0;
    start = cpu_s();
    for (size_t i = 0; i < more; i++) {
        double before_call = thread_cpu_s();
        allocate(more_size);
        double spent = thread_cpu_s() - before_call;
        worst = spent > worst ? spent : worst;
    }
    figure("more_us", (cpu_s() - start) / (double)more * 1e6);
    figure("worst_us", worst * 1e6);
    figure("rss_mib", resident_mib() - before);
    conclude();
    _exit(0);
}
