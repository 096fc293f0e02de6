/* Buffers are filled, cut to what they hold by realloc, and kept: the rest of each must serve
 * others. Where they become as long again and are cut again, over and over, or are freed at once,
 * realloc must not copy them each time.
 *
 * usage: shrunk BUFFERS SIZE SHORTER ROUNDS LIVE
 * LIVE buffers live at a time; after all were made, each becomes as long as it was, and shorter,
 * ROUNDS times, all in turn.
 * figures: rss_mib   resident memory while the last ones live
 *          step_us   processor time of making and cutting one; with ROUNDS, of a realloc
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1), size = argument(argc, argv, 2);
    size_t shorter = argument(argc, argv, 3), rounds = argument(argc, argv, 4);
    size_t live = argument(argc, argv, 5), steps = rounds ? 2 * rounds * live : count;
    unsigned char **buffers = allocate(live * sizeof *buffers);
    memset(buffers, 0, live * sizeof *buffers);
    double start = cpu_s();
    for (size_t i = 0; i < count; i++) {
        unsigned char **buffer = &buffers[i % live];
        free(*buffer);
        *buffer = allocate(size);
        memset(*buffer, (int)(i % live), size);
        *buffer = realloc(*buffer, shorter);
        REQUIRE(*buffer != NULL);
    }
    if (rounds)
        start = cpu_s();
    for (size_t i = 0; i < rounds * live; i++) {
        unsigned char **buffer = &buffers[i % live];
        *buffer = realloc(*buffer, size);
        REQUIRE(*buffer != NULL && malloc_usable_size(*buffer) >= size);
        (*buffer)[size - 1] = 1;
        *buffer = realloc(*buffer, shorter);
        REQUIRE(*buffer != NULL);
    }
    figure("step_us", (cpu_s() - start) / (double)steps * 1e6);
    figure("rss_mib", resident_mib());
    for (size_t i = 0; i < live; i++) {
        unsigned char *buffer = buffers[i];
        for (size_t place = 0; place < shorter; place++)
            REQUIRE(buffer[place] == (unsigned char)i);
        free(buffer);
    }
    free(buffers);
    conclude();
    return 0;
}
