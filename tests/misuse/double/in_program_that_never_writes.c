/* A double free in a program that never writes to its blocks: they all carry the mark of their last
 * free, so that it says little, and soon free no longer searches for every one of them.
 *
 * tiny: at drain
 *     hakmem: free(): double free of BAD
 * mid, large, big: not applicable
 * hardened tiny: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

enum { BLOCKS = 100, ROUNDS = 20, BETWEEN = 20 };

void misuse(size_t size)
{
    void *blocks[BLOCKS];
    /* Short magazines, those of mid blocks, may find it again among the 16 on top. */
    if (size > 1024)
        not_applicable();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = need(malloc(size));
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
    for (int i = 0; i < BETWEEN; i++)
        blocks[i] = need(malloc(size));
    void *block = new_victim(size);
    free(block);
    for (int i = 0; i < BETWEEN; i++)
        free(blocks[i]);
    free_wrongly(block);
}
