/* A ring of aligned buffers of 1 to 4 MB, of which little is touched.
 *
 * usage: aligned_ring ALIGNMENT_KIB LOW_KIB HIGH_KIB RING BUFFERS TOUCHED_PERCENT
 * figures: cpu_ms   processor time
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    enum { RING_MAX = 4096 };
    static void *ring[RING_MAX];
    size_t alignment = argument(argc, argv, 1) * KIB, low = argument(argc, argv, 2) * KIB;
    size_t high = argument(argc, argv, 3) * KIB, length = argument(argc, argv, 4);
    size_t count = argument(argc, argv, 5), percent = argument(argc, argv, 6);
    REQUIRE(length <= RING_MAX);
    double start = cpu_s();
    for (size_t i = 0; i < count; i++) {
        size_t size = random_between(low, high);
        void **place = &ring[i % length];
        free(*place);
        REQUIRE(posix_memalign(place, alignment, size) == 0);
        memset(*place, 1, size * percent / 100);
    }
    figure("cpu_ms", (cpu_s() - start) * 1e3);
    conclude();
    return 0;
}
