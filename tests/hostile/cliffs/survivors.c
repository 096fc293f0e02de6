/* Phases, each of which fills the heap with blocks of its own sizes; of each phase few survive.
 *
 * usage: survivors BLOCKS ONE_IN PHASES SIZE GROWTH_PERCENT
 * figures: cpu_ms     processor time
 *          rss_mib    resident memory at the end
 *          mappings   at the end
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1), one_in = argument(argc, argv, 2);
    size_t phases = argument(argc, argv, 3), size = argument(argc, argv, 4);
    size_t growth = argument(argc, argv, 5);
    char **blocks = allocate(count * sizeof *blocks);
    double start = cpu_s();
    for (size_t phase = 0; phase < phases; phase++) {
        for (size_t i = 0; i < count; i++) {
            size_t bytes = random_between(size, size * 13 / 10);
            blocks[i] = allocate(bytes);
            memset(blocks[i], 1, bytes);
        }
        for (size_t i = 0; i < count; i++) {
            if (i % one_in) {
                free(blocks[i]);
            }
        }
        size = size * growth / 100;
    }
    figure("cpu_ms", (cpu_s() - start) * 1e3);
    figure("rss_mib", resident_mib());
    figure("mappings", mapping_count());
    conclude();
    _exit(0);
}
