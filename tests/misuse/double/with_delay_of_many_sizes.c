/* Ten thousand blocks of all sizes come and go between the two frees.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    for (size_t i = 0; i < 10000; i++) {
        size_t other = 1 + i * 7919 % 70000;
        if (other / 16 != size / 16)
            free(need(malloc(other)));
    }
    free_wrongly(block);
}
