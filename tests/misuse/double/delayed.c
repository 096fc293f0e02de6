/* The second free comes after a hundred thousand calls of malloc and free with other sizes.
 *
 * tiny, mid: at once
 *     hakmem: free(): double free of BAD
 * large, big: at once
 *     hakmem: free(): double free of BAD
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

#include <sys/mman.h>

enum { CALLS = 100000, HELD = 512 };

static void *held[HELD];

static void allocate_and_free(size_t size)
{
    uint32_t random = 1;
    for (int i = 0; i < CALLS; i++) {
        random = random * 1664525 + 1013904223;
        void **slot = &held[random >> 23];
        free(*slot);
        /* A quarter of the victim's size at most: nobody may be given its block. */
        *slot = need(malloc((random >> 8) % (size / 4) % 4000));
    }
}

void misuse(size_t size)
{
    /* Once before: nor may memory grow into the pages of a large one. */
    allocate_and_free(size);
    void *block = new_victim(size);
    free(block);
    /* Where it was unmapped at once, no new mapping may take its address. */
    mmap(block, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    allocate_and_free(size);
    free_wrongly(block);
}
