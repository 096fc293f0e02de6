/* realloc has moved a block, and is given the old pointer again.
 *
 * all: at once
 *     hakmem: realloc(): double free of BAD
 *     hakmem: realloc(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

void misuse(size_t size)
{
    char *block = need(malloc(size));
    announce(block, block);
    char *moved = need(realloc(block, 20 * size));
    if (moved == block)
        not_applicable();
    (void)need(realloc(hide(block), 20 * size));
    survived();
}
