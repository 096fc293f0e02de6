/* A server in its steady state, all calls of which hit, a hundred a thousandth of a second: until
 * SIGTERM. Then it says how many calls of malloc it has made.
 *
 * usage: steady
 */
#include "program.h"

#include <signal.h>
#include <stdint.h>
#include <unistd.h>

static volatile sig_atomic_t is_over;

static void on_signal(int signal)
{
    (void)signal;
    is_over = 1;
}

int main(void)
{
    enum { SIZES = 64, CALLS = 5 };
    static char line[64];
    uint64_t calls = 1;
    char *volatile first = malloc(1);
    setvbuf(stdout, line, _IOLBF, sizeof line);
    signal(SIGTERM, on_signal);
    free(first);
    puts("runs");
    while (!is_over) {
        for (size_t i = 0; i < CALLS; i++, calls++) {
            char *volatile block = malloc(16 * (1 + calls % SIZES));
            REQUIRE(block != NULL);
            *block = 1;
            free(block);
        }
        usleep(1000);
    }
    printf("%llu\n", (unsigned long long)calls);
    return 0;
}
