/* The words of a freed block are looked at, which tells of no address: nothing is mapped there.
 *
 * tiny, mid: no mistake
 * large, big: not applicable
 */
#include "misuse.h"

#include <sys/mman.h>

void misuse(size_t size)
{
    const uintptr_t page = 4096;
    uintptr_t words[WORDS_MAX];
    unsigned char resident;
    if (size > SLAB_BLOCK_MAX)
        not_applicable();
    size_t found = words_of_freed(size, words);
    for (size_t i = 0; i < found; i++)
        if (mincore((void *)(words[i] / page * page), page, &resident) == 0)
            broken("an address");
}
