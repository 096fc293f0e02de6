/* Live blocks are full of each word that was found in a freed one, and are freed by another thread
 * or given to realloc.
 *
 * tiny, mid: no mistake
 * large, big: not applicable
 */
#include "misuse.h"

static void free_in_thread(void **blocks)
{
    run_in_thread(free_group, blocks);
}

static void reallocate(void **blocks, size_t size, uintptr_t word)
{
    for (size_t i = 0; blocks[i]; i++) {
        void *moved = need(realloc(blocks[i], size * 2));
        fill_words(moved, size * 2, word);
        free(moved);
    }
}

void misuse(size_t size)
{
    uintptr_t words[WORDS_MAX];
    if (size > SLAB_BLOCK_MAX)
        not_applicable();
    size_t found = words_of_freed(size, words);
    for (size_t w = 0; w < found; w++) {
        void *blocks[GROUP_MAX + 1] = {NULL};
        for (size_t i = 0; i < group_for(size); i++) {
            blocks[i] = need(malloc(size));
            fill_words(blocks[i], size, words[w]);
            if (malloc_usable_size(blocks[i]) < size)
                broken("usable size");
        }
        if (w % 2 == 0)
            free_in_thread(blocks);
        else
            reallocate(blocks, size, words[w]);
    }
}
