/* Frame buffers by calloc, written whole and freed.
 *
 * usage: frames KIB FRAMES
 * figures: cpu_ms   processor time
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    size_t size = argument(argc, argv, 1) * KIB, frames = argument(argc, argv, 2);
    double start = cpu_s();
    for (size_t i = 0; i < frames; i++) {
        char *frame = calloc(1, size);
        REQUIRE(frame != NULL);
        memset(frame, 1, size);
        free(frame);
    }
    figure("cpu_ms", (cpu_s() - start) * 1e3);
    conclude();
    return 0;
}
