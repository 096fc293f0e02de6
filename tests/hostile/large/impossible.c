/* A program asks for what cannot be now and then, and copes with NULL, beside ordinary work in a
 * heap with much free memory. Asking must cost nothing, and must not make the work dearer.
 *
 * usage: impossible
 * figures: round_us   processor time of a round of one impossible call and some thousand others
 *          plain_us   of the same round without it
 *          worst_us   of the impossible calls: the cheapest round, its dearest call
 */
#include "hostile.h"

enum { BLOCKS = 300000, ROUNDS = 100, CALLS = 2000 };

static char *blocks[BLOCKS];

static void replace(size_t at)
{
    free(blocks[at]);
    blocks[at] = allocate(1000);
    memset(blocks[at], 1, 1000);
}

static void work(void)
{
    for (int i = 0; i < CALLS; i++) {
        replace(random_between(0, BLOCKS - 1));
    }
    for (int i = 0; i < CALLS; i++) {
        size_t at = random_between(0, BLOCKS - 1);
        if (at % 10) {
            free(blocks[at]);
            blocks[at] = NULL;
        }
    }
}

/* Each form of it, with an answer of NULL. Returns the time of the dearest. */
static double ask_for_the_impossible(void)
{
    static volatile const size_t sizes[] = {
        (size_t)1 << 46, (size_t)1 << 47, SIZE_MAX / 4, SIZE_MAX - 10};
    double worst = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double start = thread_cpu_s();
        void *block = malloc(sizes[i]);
        void *zeroed = calloc(sizes[i] / 8, 8);
        void *aligned = aligned_alloc((size_t)1 << 45, sizes[i] / 8);
        void *longer = realloc(NULL, sizes[i]);
        double spent = (thread_cpu_s() - start) / 4;
        REQUIRE(!block && !zeroed && !longer);
        free(aligned);
        worst = spent > worst ? spent : worst;
    }
    return worst;
}

int main(void)
{
    double worst = 1e9, start;
    for (size_t i = 0; i < BLOCKS; i++) {
        replace(i);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % 10) {
            free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    start = cpu_s();
    for (int i = 0; i < ROUNDS; i++) {
        work();
    }
    figure("plain_us", (cpu_s() - start) / ROUNDS * 1e6);
    start = cpu_s();
    for (int i = 0; i < ROUNDS; i++) {
        double dearest = ask_for_the_impossible();
        worst = dearest < worst ? dearest : worst;
        work();
    }
    figure("round_us", (cpu_s() - start) / ROUNDS * 1e6);
    figure("worst_us", worst * 1e6);
    conclude();
    return 0;
}
