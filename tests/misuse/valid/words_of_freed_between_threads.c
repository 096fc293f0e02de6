/* Blocks change hands while the threads' caches grow and shrink; each holder writes a word of a
 * freed block into the live one. A look into another thread's cache, by the allocator, must not
 * take such a block for one that lies there.
 *
 * tiny: no mistake
 * mid, large, big: not applicable
 */
#include "misuse.h"

#include <stdatomic.h>

enum { EXCHANGED = 64, ROUNDS = 20000, BURST = 96, THREADS = 4 };

static void *_Atomic exchanged[EXCHANGED];
static size_t block_size;
static uintptr_t word;

static void *exchange(void *argument)
{
    void *burst[BURST];
    unsigned at = (unsigned)(uintptr_t)argument;
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t count = round % 64 == 0 ? BURST : 1 + round % 3;
        for (size_t i = 0; i < count; i++) {
            burst[i] = need(malloc(block_size));
            *(uintptr_t *)burst[i] = word;
        }
        at = (at * 5 + 1) % EXCHANGED;
        burst[0] = atomic_exchange(&exchanged[at], burst[0]);
        if (burst[0] && malloc_usable_size(burst[0]) < block_size)
            broken("usable size");
        for (size_t i = 0; i < count; i++)
            free(burst[i]);
    }
    return NULL;
}

void misuse(size_t size)
{
    pthread_t threads[THREADS];
    uintptr_t words[WORDS_MAX];
    if (size > 1024)
        not_applicable(); /* nothing new beyond the first tier, and much slower */
    size_t found = words_of_freed(size, words);
    block_size = size;
    for (size_t w = 0; w < found; w++) {
        word = words[w];
        for (size_t i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, exchange, (void *)(i * 13)) != 0)
                broken("no thread");
        for (size_t i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < EXCHANGED; i++)
        free(atomic_exchange(&exchanged[i], NULL));
}
