/* Makes one mistake with blocks over and over, until a guarded one finds it.
 *
 * usage: guard_program overflow|grown|after|double|none [handler]
 * grown: the blocks come from a realloc that grows them by little
 * handler: the program has one of its own for SIGSEGV, which ends it with status 7
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 200000, SIZE = 96, BEFORE = 1024, GROWN = 1104 };

__attribute__((noinline)) static char *allocate(void)
{
    char *block = malloc(SIZE);
    memset(block, 1, SIZE);
    return block;
}

__attribute__((noinline)) static void release(char *block)
{
    free(block);
    __asm__ volatile("");
}

static void own_handler(int signal)
{
    (void)signal;
    _exit(7);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (argc > 2)
        signal(SIGSEGV, own_handler);
    for (int i = 0; i < ROUNDS; i++) {
        bool grown = strcmp(argv[1], "grown") == 0;
        volatile char *block = grown ? realloc(malloc(BEFORE), GROWN) : allocate();
        if (grown)
            block[GROWN] = 1;
        if (strcmp(argv[1], "overflow") == 0)
            block[SIZE] = 1;
        release((char *)block);
        if (strcmp(argv[1], "after") == 0)
            block[5]++;
        if (strcmp(argv[1], "double") == 0 && i % 100 == 99)
            release((char *)block);
    }
    puts("not found");
    return 0;
}
