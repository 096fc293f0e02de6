/* Arrays that are filled: large ones once, and one that comes and goes before blocks of which a
 * page is used. How far the first were used must not cost memory for the others.
 *
 * usage: filled ARRAYS MIB ROUNDS SPARSE SPARSE_MIB
 * figures: faults   page faults while the arrays were filled, which stay if ROUNDS is 1
 *          rss_mib  resident memory at the end
 *          cpu_ms   processor time of the sparse blocks
 */
#include "hostile.h"

int main(int argc, char **argv)
{
    size_t arrays = argument(argc, argv, 1), size = argument(argc, argv, 2) * MIB;
    size_t rounds = argument(argc, argv, 3), sparse = argument(argc, argv, 4);
    size_t sparse_size = argument(argc, argv, 5) * MIB - 100;
    double before = page_faults();
    for (size_t i = 0; i < arrays; i++) {
        memset(allocate(size), 1, size);
    }
    figure("faults", page_faults() - before);
    for (size_t i = 1; i < rounds; i++) {
        char *zeroed = calloc(1, size);
        REQUIRE(zeroed != NULL && zeroed[size / 2] == 0);
        memset(zeroed, (int)i, size);
        free(zeroed);
    }
    double start = cpu_s();
    for (size_t i = 0; i < sparse; i++) {
        char *block = allocate(sparse_size);
        block[5000] = 1;
    }
    figure("cpu_ms", (cpu_s() - start) * 1e3);
    figure("rss_mib", resident_mib());
    conclude();
    _exit(0);
}
