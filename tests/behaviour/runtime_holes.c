/* A heap of which random regions are freed and taken again has few mappings (behaviour 46): memory
 * that goes back leaves no holes. */
#include "runtime_support.h"

#include <stdio.h>

enum { BLOCKS = 400000, ROUNDS = 4 };

static long mappings(void)
{
    static char text[1 << 16];
    long lines = 0;
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0);
    for (ssize_t length; (length = read(file, text, sizeof text)) > 0;)
        for (ssize_t i = 0; i < length; i++)
            lines += text[i] == '\n';
    close(file);
    return lines;
}

int main(void)
{
    static char *blocks[BLOCKS];
    uint32_t seed = 5;
    for (long i = 0; i < BLOCKS; i++)
        memset(blocks[i] = malloc(1000), 1, 1000);
    long before = mappings(), resident = resident_kib();
    for (int round = 0; round < ROUNDS; round++) {
        for (long i = 0; i < BLOCKS;) {
            long end = i + 200 + random_next(&seed) % 12000;
            bool frees = random_next(&seed) % 4 != 0;
            for (; i < end && i < BLOCKS; i++) {
                if (frees) {
                    free(blocks[i]);
                    blocks[i] = NULL;
                } else if (!blocks[i]) {
                    memset(blocks[i] = malloc(900), 1, 900);
                }
            }
        }
        for (int i = 0; i < 10; i++) {
            usleep(60000);
            free(malloc(30));
        }
    }
    long after = mappings(), left = resident_kib();
    printf("%ld, then %ld mappings; %ld, then %ld KiB\n", before, after, resident, left);
    REQUIRE(after <= before + 12 && left < resident / 4 * 3);
    return 0;
}
