/* A block that another thread has freed is read.
 *
 * tiny, mid, large: reads data
 * big: reads data or ends by SIGSEGV
 * hardened tiny, mid: reads zero
 * hardened large, big: ends by SIGSEGV
 */
#include "access.h"

static void *free_it(void *block)
{
    free(block);
    return NULL;
}

void misuse(size_t size)
{
    char *block = new_victim(size);
    memset(block, 0x41, size);
    run_in_thread(free_it, block);
    read_bytes(block, size);
    survived();
}
