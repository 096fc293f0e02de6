/* The same address is freed again and again, each time after it was handed out again.
 *
 * all: no mistake
 */
#include "misuse.h"

void misuse(size_t size)
{
    for (int i = 0; i < 2000; i++) {
        void *block = need(malloc(size));
        *(void **)block = block;
        free(block);
    }
}
