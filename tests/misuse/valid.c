#include "misuse.h"

#include <stdatomic.h>
#include <sys/mman.h>

static void reallocate(void **blocks, size_t size, uintptr_t word)
{
    for (size_t i = 0; blocks[i]; i++) {
        void *moved = need(realloc(blocks[i], size * 2));
        fill_words(moved, size * 2, word);
        free(moved);
    }
}

/* Live blocks are full of each word that was found in a freed one, and are freed by another thread
 * or given to realloc.
 * tiny, mid: no mistake
 * large, big: not applicable */
CASE(valid, copy_of_freed)
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
            run_in_thread(free_group, blocks);
        else
            reallocate(blocks, size, words[w]);
    }
}

/* All that is in a new block, which was another one before, is copied into the next new ones.
 * all: no mistake */
CASE(valid, copy_of_uninitialised)
{
    void *blocks[GROUP_MAX];
    size_t count = group_for(size);
    for (int round = 0; round < 4; round++) {
        void *source = need(malloc(size));
        for (size_t i = 0; i < count; i++) {
            blocks[i] = need(malloc(size));
            memcpy(blocks[i], source, size);
        }
        for (size_t i = 0; i < count; i++)
            free(blocks[i]);
        free(source);
    }
}

/* Every byte that malloc_usable_size tells of is written.
 * all: no mistake */
CASE(valid, every_usable_byte)
{
    void *blocks[GROUP_MAX];
    size_t count = group_for(size);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = need(malloc(size));
        memset(blocks[i], (int)i, malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[count - 1 - i]);
}

static void *kept[GROUP_MAX + 1];

static void free_kept(void)
{
    free_group(kept);
}

/* Blocks are freed by a function that exit calls.
 * all: no mistake */
CASE(valid, free_at_exit)
{
    for (size_t i = 0; i < group_for(size); i++)
        kept[i] = need(malloc(size));
    atexit(free_kept);
}

/* Blocks that hold addresses are freed by a thread that did not allocate them.
 * all: no mistake */
CASE(valid, free_in_new_thread)
{
    void *blocks[GROUP_MAX + 1] = {NULL};
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < group_for(size); i++) {
            blocks[i] = need(malloc(size));
            fill_words(blocks[i], size, (uintptr_t)&blocks[i]);
        }
        run_in_thread(free_group, blocks);
    }
}

/* Every block holds the addresses of the next one and the one before.
 * all: no mistake */
CASE(valid, linked_list)
{
    void *blocks[GROUP_MAX];
    size_t count = group_for(size);
    for (size_t i = 0; i < count; i++)
        blocks[i] = need(malloc(size));
    for (size_t i = 0; i < count; i++) {
        ((void **)blocks[i])[0] = blocks[(i + 1) % count];
        ((void **)blocks[i])[1] = blocks[(i + count - 1) % count];
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

/* Memory that held small freed blocks is handed out as one large block, and copied into small ones.
 * all: no mistake */
CASE(valid, memory_that_changes_its_size)
{
    void *blocks[GROUP_MAX];
    size_t count = group_for(size);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < count; i++)
            blocks[i] = need(malloc(size));
        for (size_t i = 0; i < count; i++)
            free(blocks[i]);
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

/* NULL is freed, in every way there is.
 * any: no mistake */
CASE(valid, null)
{
    free(NULL);
    cfree(NULL);
    free_sized(NULL, size);
    free_aligned_sized(NULL, 64, size);
    _ZdlPv(NULL);
    _ZdaPv(NULL);
    _ZdlPvm(NULL, size);
    _ZdlPvSt11align_val_t(NULL, 64);
    if (malloc_usable_size(NULL) != 0)
        broken("usable size of NULL");
    free(need(realloc(NULL, size)));
}

/* Every word of every block holds the block's own address.
 * all: no mistake */
CASE(valid, own_address)
{
    void *blocks[GROUP_MAX];
    size_t count = group_for(size);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < count; i++) {
            blocks[i] = need(malloc(size));
            fill_words(blocks[i], size, (uintptr_t)blocks[i]);
        }
        for (size_t i = 0; i < count; i++)
            free(blocks[i]);
    }
}

/* The same address is freed again and again, each time after it was handed out again.
 * all: no mistake */
CASE(valid, same_address_many_times)
{
    for (int i = 0; i < 2000; i++) {
        void *block = need(malloc(size));
        *(void **)block = block;
        free(block);
    }
}

/* Each free that is told a size and an alignment is told those that were asked for, after realloc
 * the last.
 * all: no mistake */
CASE(valid, sizes_that_are_told)
{
    free_sized(need(malloc(size)), size);
    free_sized(need(calloc(2, size)), 2 * size);
    free_sized(need(realloc(need(malloc(size)), size + 1)), size + 1);
    free_sized(need(realloc(need(malloc(size)), size - 1)), size - 1);
    free_sized(need(realloc(need(aligned_alloc(64, size)), size - 1)), size - 1);
    for (size_t alignment = 8; alignment <= 4096; alignment *= 2) {
        free_aligned_sized(need(aligned_alloc(alignment, size)), alignment, size);
        if (alignment > 16)
            _ZdlPvmSt11align_val_t(need(_ZnwmSt11align_val_t(size, alignment)), size, alignment);
        if (alignment > 16)
            _ZdlPvSt11align_val_t(need(_ZnwmSt11align_val_t(size, alignment)), alignment);
    }
    _ZdlPvm(need(_Znwm(size)), size);
    _ZdaPvm(need(_Znam(size)), size);
    _ZdlPv(need(_Znwm(size)));
    _ZdaPv(need(_Znam(size)));
    free_sized(need(malloc(0)), 0);
    free_sized(need(realloc(need(malloc(0)), size)), size);
    free_aligned_sized(need(aligned_alloc(64, 0)), 64, 0);
    _ZdlPvm(need(_Znwm(0)), 0);
    _ZdaPvm(need(_Znam(0)), 0);
    _ZdlPvSt11align_val_t(need(_ZnwmSt11align_val_t(0, 64)), 64);
    free_sized(NULL, size);
    free_aligned_sized(NULL, 64, size);
    _ZdlPvm(NULL, size);
    _ZdaPvm(NULL, size);
    survived();
}

/* The words of a freed block are looked at, which tells of no address: nothing is mapped there.
 * tiny, mid: no mistake
 * large, big: not applicable */
CASE(valid, words_of_freed_are_no_addresses)
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

enum { EXCHANGED = 64, ROUNDS = 20000, BURST = 96, THREADS = 4 };

static void *_Atomic exchanged[EXCHANGED];
static size_t block_size;
static uintptr_t exchanged_word;

static void *exchange(void *argument)
{
    void *burst[BURST];
    unsigned at = (unsigned)(uintptr_t)argument;
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t count = round % 64 == 0 ? BURST : 1 + round % 3;
        for (size_t i = 0; i < count; i++) {
            burst[i] = need(malloc(block_size));
            *(uintptr_t *)burst[i] = exchanged_word;
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

/* Blocks change hands while the threads' caches grow and shrink; each holder writes a word of a
 * freed block into the live one. A look into another thread's cache, by the allocator, must not
 * take such a block for one that lies there.
 * tiny: no mistake
 * mid, large, big: not applicable */
CASE(valid, words_of_freed_between_threads)
{
    pthread_t threads[THREADS];
    uintptr_t words[WORDS_MAX];
    if (size > 1024)
        not_applicable(); /* nothing new beyond the first tier, and much slower */
    size_t found = words_of_freed(size, words);
    block_size = size;
    for (size_t w = 0; w < found; w++) {
        exchanged_word = words[w];
        for (size_t i = 0; i < THREADS; i++)
            if (pthread_create(&threads[i], NULL, exchange, (void *)(i * 13)) != 0)
                broken("no thread");
        for (size_t i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < EXCHANGED; i++)
        free(atomic_exchange(&exchanged[i], NULL));
}

/* Live blocks of all sizes are full of each word that was found in a freed one.
 * tiny, mid: no mistake
 * large, big: not applicable */
CASE(valid, words_of_freed_in_other_sizes)
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
