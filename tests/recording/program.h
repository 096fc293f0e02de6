/* What the programs of this folder share: correct programs of kinds that might disturb who samples
 * or logs. Each prints "done" and ends with 0, sampled, recorded or not. */
#ifndef RECORDING_PROGRAM_H
#define RECORDING_PROGRAM_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct mode {
    const char *name;
    void (*run)(void);
};

/* Blocks of many sizes, some of them sampled, come and go; 1 MiB in all. */
__attribute__((noinline, unused)) static void allocate_some(void)
{
    static const size_t sizes[] = {1, 24, 200, 1000, 3000, 9000, 40000, 200000};
    for (int round = 0; round < 4; round++) {
        char *blocks[8];
        for (size_t i = 0; i < 8; i++) {
            REQUIRE((blocks[i] = malloc(sizes[i])) != NULL);
            memset(blocks[i], round, sizes[i]);
        }
        for (size_t i = 0; i < 8; i++) {
            REQUIRE((blocks[i] = realloc(blocks[i], sizes[i] + 100)) != NULL);
            REQUIRE(blocks[i][0] == round && blocks[i][sizes[i] - 1] == round);
            free(blocks[i]);
        }
    }
}

__attribute__((unused)) static int run_mode(
    const struct mode *modes, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(modes[i].name, name) == 0) {
            modes[i].run();
            puts("done");
            return 0;
        }
    }
    fprintf(stderr, "there is no mode %s\n", name);
    return 2;
}

#endif
