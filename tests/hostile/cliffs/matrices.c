/* A matrix library: expressions of six temporaries of 80 KB to 5 MB, one of them by calloc.
 *
 * usage: matrices EXPRESSIONS
 * figures: cpu_ms    processor time
 *          faults    page faults
 */
#include "hostile.h"

static void *temporary(bool zeroed)
{
    size_t size = random_between(100, 800) * random_between(100, 800) * sizeof(double);
    void *matrix = zeroed ? calloc(1, size) : malloc(size);
    REQUIRE(matrix != NULL);
    memset(matrix, 1, size);
    return matrix;
}

int main(int argc, char **argv)
{
    enum { TEMPORARIES = 6 };
    size_t expressions = argument(argc, argv, 1);
    double faults = page_faults(), start = cpu_s();
    for (size_t i = 0; i < expressions; i++) {
        void *matrices[TEMPORARIES];
        for (int k = 0; k < TEMPORARIES; k++) {
            matrices[k] = temporary(k == 2);
            if (k > 1) {
                free(matrices[k - 2]);
            }
        }
        free(matrices[TEMPORARIES - 2]);
        free(matrices[TEMPORARIES - 1]);
    }
    figure("cpu_ms", (cpu_s() - start) * 1e3);
    figure("faults", page_faults() - faults);
    conclude();
    return 0;
}
