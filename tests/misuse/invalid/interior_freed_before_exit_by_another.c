/* The main thread frees a pointer into a block, and another thread ends the process by exit: only
 * that one's cache is looked at.
 *
 * tiny: not caught
 * mid, large, big: at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once
 *     hakmem: free(): invalid pointer BAD: inside a block of N bytes at BASE
 */
#include "misuse.h"

static void *end_process(void *unused)
{
    (void)unused;
    exit(0);
}

void misuse(size_t size)
{
    free_inside(size, 16);
    run_in_thread(end_process, NULL);
}
