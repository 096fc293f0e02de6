/* What plugins.c loads. KEEPER is the name of the function that keeps blocks; PAD bytes before it
 * give it an address of its own. */
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 64, BYTES = 32768 };

__attribute__((noinline, section(".text.keep"))) void KEEPER(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        char *block = malloc(BYTES);
        if (!block)
            abort();
        memset(block, i, BYTES);
    }
}

void fill(void)
{
    __asm__ volatile(".skip " PAD ", 0x90");
    KEEPER();
    __asm__ volatile("");
}
