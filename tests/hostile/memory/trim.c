/* A program with a large heap full of holes calls malloc_trim(0) now and then, as some do each
 * second. When nothing was freed since the last time, it must cost nothing.
 *
 * usage: trim BLOCKS SIZE
 * figures: first_us   processor time of the first call
 *          again_us   of one of the next
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    enum { TIMES = 20 };
    size_t count = argument(argc, argv, 1), size = argument(argc, argv, 2);
    char **blocks = allocate(count * sizeof *blocks);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = allocate(size);
    }
    for (size_t i = 0; i < count; i += 2) {
        free(blocks[i]);
    }
    double start = cpu_s();
    malloc_trim(0);
    figure("first_us", (cpu_s() - start) * 1e6);
    start = cpu_s();
    for (int i = 0; i < TIMES; i++) {
        malloc_trim(0);
    }
    figure("again_us", (cpu_s() - start) / TIMES * 1e6);
    conclude();
    _exit(0);
}
