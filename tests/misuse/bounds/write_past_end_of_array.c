/* An array grows by realloc, step by step, and its last element is written one too far.
 *
 * all: not caught
 * hardened tiny, mid, large: at once
 *     hakmem: realloc(): write beyond the end of BAD
 * hardened big: at once or ends by SIGSEGV or not caught
 *     hakmem: realloc(): write beyond the end of BAD
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = NULL;
    size_t step = size / 16 + 8;
    for (size_t length = step; length <= size; length += step) {
        block = need(realloc(block, length));
        memset(block, 1, length);
        size_t rest = length + step;
        if (rest > size) {
            announce(block, block);
            write_bytes(block + length, 1);
            block = need(realloc(block, rest));
        }
    }
    survived();
    free(block);
}
