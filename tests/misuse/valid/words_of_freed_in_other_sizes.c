/* Live blocks of all sizes are full of each word that was found in a freed one.
 *
 * tiny, mid: no mistake
 * large, big: not applicable
 */
#include "misuse.h"

void misuse(size_t size)
{
    uintptr_t words[WORDS_MAX];
    if (size > SLAB_BLOCK_MAX)
        not_applicable();
    size_t found = words_of_freed(size, words);
    for (size_t w = 0; w < found; w++) {
        for (size_t other = 16; other < 200000; other = other * 2 + 16) {
            void *first = need(malloc(other));
            void *second = need(calloc(1, other));
            void *third = need(memalign(64, other));
            fill_words(first, other, words[w]);
            fill_words(second, other, words[w]);
            fill_words(third, other, words[w]);
            free(first);
            third = need(realloc(third, other + 100));
            free_sized(second, other);
            free(third);
        }
    }
}
