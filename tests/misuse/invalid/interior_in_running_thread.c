/* A pointer into a block is freed by a thread that is still there when the process exits: all of
 * its cache can be looked at only if it has parked its heap.
 *
 * tiny, mid: not caught or at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 * large, big: at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 */
#include "misuse.h"

void misuse(size_t size)
{
    static struct helper helper;
    helper_start(&helper);
    helper_free(&helper, need(malloc(size)));
    char *block = need(malloc(size));
    announce(block + 16, block);
    helper_free(&helper, block + 16);
}
