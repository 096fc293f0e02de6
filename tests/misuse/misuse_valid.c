/* Owns the programs without a mistake that a hasty check would call wrong: behaviour 24.
 *
 * What the library itself writes into a freed block can come back to it inside a live one: a
 * program may copy whatever it finds in memory that it never initialised. Such a block is not free.
 */
#include "misuse.h"

#include <stdatomic.h>

enum { BLOCKS = 300 };

/* Blocks may be large; only so many of those are used that memory does not run out. */
static size_t count_for(size_t size)
{
    size_t count = ((size_t)64 << 20) / size;
    return count > BLOCKS ? BLOCKS : count < 4 ? 4 : count;
}

static void fill_words(void *block, size_t size, uintptr_t word)
{
    uintptr_t *words = block;
    for (size_t i = 0; i < size / sizeof(word); i++) {
        words[i] = word;
    }
}

static void valid_own_address(size_t size)
{
    void *blocks[BLOCKS];
    size_t count = count_for(size);
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < count; i++) {
            blocks[i] = need(malloc(size));
            fill_words(blocks[i], size, (uintptr_t)blocks[i]);
        }
        for (size_t i = 0; i < count; i++) {
            free(blocks[i]);
        }
    }
}

/* Every block holds the address of the next and the one before, as lists do. */
static void valid_linked_list(size_t size)
{
    void *blocks[BLOCKS];
    size_t count = count_for(size);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = need(malloc(size));
    }
    for (size_t i = 0; i < count; i++) {
        ((void **)blocks[i])[0] = blocks[(i + 1) % count];
        ((void **)blocks[i])[1] = blocks[(i + count - 1) % count];
    }
    for (size_t i = 0; i < count; i++) {
        free(blocks[i]);
    }
}

/* Copies all that is in a new block, which was another one before, into the next new block. */
static void valid_copy_of_uninitialised(size_t size)
{
    void *blocks[BLOCKS];
    size_t count = count_for(size);
    for (unsigned round = 0; round < 4; round++) {
        void *source = need(malloc(size));
        for (size_t i = 0; i < count; i++) {
            blocks[i] = need(malloc(size));
            memcpy(blocks[i], source, size);
        }
        for (size_t i = 0; i < count; i++) {
            free(blocks[i]);
        }
        free(source);
    }
}

/* Words that a freed block of this size begins with, whatever they mean. */
static size_t words_of_freed(size_t size, uintptr_t *words, size_t limit)
{
    void *block = need(malloc(size));
    size_t count = size / sizeof(uintptr_t) < limit ? size / sizeof(uintptr_t) : limit;
    fill_words(block, count * sizeof(uintptr_t), 0x5555);
    free(block);
    /* Slab memory stays readable; looking at it is the point here. */
    memcpy(words, hide(block), count * sizeof(uintptr_t));
    return count;
}

static void *free_many(void *argument)
{
    void **blocks = argument;
    for (size_t i = 0; blocks[i] != NULL; i++) {
        free(blocks[i]);
    }
    return NULL;
}

/* Blocks full of each word found in a freed block, given back in every way there is. */
static void valid_copy_of_freed(size_t size)
{
    uintptr_t words[8];
    if (size > 32768) {
        not_applicable(); /* a freed span or mapping may be gone */
    }
    size_t found = words_of_freed(size, words, COUNT_OF(words));
    for (size_t w = 0; w < found; w++) {
        void *blocks[BLOCKS + 1] = {NULL};
        size_t count = count_for(size);
        for (size_t i = 0; i < count; i++) {
            blocks[i] = need(malloc(size));
            fill_words(blocks[i], size, words[w]);
            if (malloc_usable_size(blocks[i]) < size) {
                broken("usable size");
            }
        }
        if (w % 2 == 0) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, free_many, blocks) != 0) {
                broken("no thread");
            }
            pthread_join(thread, NULL);
        } else {
            for (size_t i = 0; i < count; i++) {
                void *moved = need(realloc(blocks[i], size * 2));
                fill_words(moved, size * 2, words[w]);
                free(moved);
            }
        }
    }
}

/* The same for blocks of all sizes, and with the words at every place where one may be expected. */
static void valid_words_of_freed_in_other_sizes(size_t size)
{
    uintptr_t words[8];
    if (size > 32768) {
        not_applicable();
    }
    size_t found = words_of_freed(size, words, COUNT_OF(words));
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

/* Memory that held small freed blocks is handed out as one large block, and copied back. */
static void valid_memory_that_changes_its_size(size_t size)
{
    void *blocks[BLOCKS];
    for (unsigned round = 0; round < 3; round++) {
        size_t count = count_for(size);
        for (size_t i = 0; i < count; i++) {
            blocks[i] = need(malloc(size));
        }
        for (size_t i = 0; i < count; i++) {
            free(blocks[i]);
        }
        hakmem_thread_flush();
        char *large = need(malloc(60000));
        for (size_t offset = 0; offset + 1024 <= 60000; offset += 200) {
            void *copy = need(malloc(1024));
            memcpy(copy, large + offset, 1024);
            free(copy);
        }
        free(large);
    }
}

/* The same address is freed again and again, each time after it was handed out again. */
static void valid_same_address_many_times(size_t size)
{
    for (unsigned i = 0; i < 2000; i++) {
        void *block = need(malloc(size));
        *(void **)block = block;
        free(block);
    }
}

/* Blocks change hands while the threads' caches grow and shrink; each holder writes the word of a
 * freed block into the live one. A look into another thread's cache, by the allocator, must not
 * take such a block for one that lies there. */
enum { EXCHANGED = 64, EXCHANGE_ROUNDS = 20000 };

static struct {
    void *_Atomic block[EXCHANGED];
    size_t size;
    uintptr_t word;
} exchange;

static void *exchange_marked(void *argument)
{
    void *burst[96];
    unsigned at = (unsigned)(uintptr_t)argument;
    for (unsigned round = 0; round < EXCHANGE_ROUNDS; round++) {
        size_t count = round % 64 == 0 ? COUNT_OF(burst) : 1 + round % 3;
        for (size_t i = 0; i < count; i++) {
            burst[i] = need(malloc(exchange.size));
            ((uintptr_t *)burst[i])[1] = exchange.word;
        }
        at = (at * 5 + 1) % EXCHANGED;
        burst[0] = atomic_exchange(&exchange.block[at], burst[0]);
        if (burst[0] && malloc_usable_size(burst[0]) < exchange.size) {
            broken("usable size");
        }
        for (size_t i = 0; i < count; i++) {
            free(burst[i]);
        }
    }
    return NULL;
}

static void valid_words_of_freed_between_threads(size_t size)
{
    pthread_t threads[4];
    uintptr_t words[8];
    if (size > 1024) {
        not_applicable(); /* nothing new beyond the first tier, and much slower */
    }
    size_t found = words_of_freed(size, words, COUNT_OF(words));
    exchange.size = size;
    for (size_t w = 0; w < found; w++) {
        exchange.word = words[w];
        for (size_t i = 0; i < COUNT_OF(threads); i++) {
            if (pthread_create(&threads[i], NULL, exchange_marked, (void *)(i * 13)) != 0) {
                broken("no thread");
            }
        }
        for (size_t i = 0; i < COUNT_OF(threads); i++) {
            pthread_join(threads[i], NULL);
        }
    }
    for (size_t i = 0; i < EXCHANGED; i++) {
        free(atomic_exchange(&exchange.block[i], NULL));
    }
}

static void valid_every_usable_byte(size_t size)
{
    void *blocks[BLOCKS];
    size_t count = count_for(size);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = need(malloc(size));
        memset(blocks[i], (int)i, malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; i++) {
        free(blocks[count - 1 - i]);
    }
}

static void *blocks_for_exit[BLOCKS + 1];

static void free_them(void)
{
    free_many(blocks_for_exit);
}

static void valid_free_at_exit(size_t size)
{
    for (size_t i = 0; i < count_for(size); i++) {
        blocks_for_exit[i] = need(malloc(size));
    }
    atexit(free_them);
}

static void valid_free_in_new_thread(size_t size)
{
    void *blocks[BLOCKS + 1] = {NULL};
    for (unsigned round = 0; round < 4; round++) {
        pthread_t thread;
        for (size_t i = 0; i < count_for(size); i++) {
            blocks[i] = need(malloc(size));
            fill_words(blocks[i], size, (uintptr_t)&blocks[i]);
        }
        if (pthread_create(&thread, NULL, free_many, blocks) != 0) {
            broken("no thread");
        }
        pthread_join(thread, NULL);
    }
}

static void valid_null(size_t size)
{
    free(NULL);
    cfree(NULL);
    free_sized(NULL, size);
    free_aligned_sized(NULL, 64, size);
    _ZdlPv(NULL);
    if (malloc_usable_size(NULL) != 0) {
        broken("usable size of NULL");
    }
    free(need(realloc(NULL, size)));
}

const struct misuse_case valid_cases[] = {
    {"valid_own_address", valid_own_address},
    {"valid_linked_list", valid_linked_list},
    {"valid_copy_of_uninitialised", valid_copy_of_uninitialised},
    {"valid_copy_of_freed", valid_copy_of_freed},
    {"valid_words_of_freed_in_other_sizes", valid_words_of_freed_in_other_sizes},
    {"valid_memory_that_changes_its_size", valid_memory_that_changes_its_size},
    {"valid_same_address_many_times", valid_same_address_many_times},
    {"valid_words_of_freed_between_threads", valid_words_of_freed_between_threads},
    {"valid_every_usable_byte", valid_every_usable_byte},
    {"valid_free_at_exit", valid_free_at_exit},
    {"valid_free_in_new_thread", valid_free_in_new_thread},
    {"valid_null", valid_null},
    {NULL, NULL},
};
