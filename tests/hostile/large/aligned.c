/* Untouched blocks at multiples of a large number. The cost of one must not grow with their count.
 *
 * usage: aligned BLOCKS ALIGNMENT SIZE
 * figures: malloc_us   processor time of a call
 *          worst_us    of the worst
 *          rss_mib     resident memory at the end
 *          mappings    then
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1), alignment = argument(argc, argv, 2);
    size_t size = argument(argc, argv, 3);
    double start = cpu_s(), worst = 0;
    for (size_t i = 0; i < count; i++) {
        double before = thread_cpu_s();
        void *block = aligned_alloc(alignment, size);
        double spent = thread_cpu_s() - before;
        REQUIRE(block != NULL && (uintptr_t)block % alignment == 0);
        worst = spent > worst ? spent : worst;
    }
    figure("malloc_us", (cpu_s() - start) / (double)count * 1e6);
    figure("worst_us", worst * 1e6);
    figure("rss_mib", resident_mib());
    figure("mappings", mapping_count());
    conclude();
    _exit(0);
}
