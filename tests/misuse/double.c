#include "misuse.h"

#include <sys/mman.h>
#include <unistd.h>

/* The thread has flushed its cache between the two frees.
 * all: at once | free(): double free of BAD */
CASE(double, after_flush)
{
    void *block = new_victim(size);
    void *neighbour = need(malloc(size));
    free(block);
    hakmem_thread_flush();
    free_wrongly(block);
    free(neighbour);
}

/* A neighbour overflows into the freed block, which destroys the mark that tells of the first free.
 * tiny: at drain | free(): double free of BAD
 * mid, large, big: not applicable
 * hardened tiny: not applicable */
CASE(double, after_overflow_into_it)
{
    char *neighbour = need(malloc(size));
    size_t usable = malloc_usable_size(neighbour);
    char *block = need(malloc(size));
    announce(block, block);
    if (size > 1024 || block != neighbour + usable)
        not_applicable();
    free(block);
    memset(neighbour, 0, usable + 16);
    free_wrongly(block);
}

/* The freed block is written to, which destroys the mark that tells of the first free.
 * tiny: at drain | free(): double free of BAD
 * mid, large, big: at once | free(): double free of BAD
 * hardened tiny: at once | free(): double free of BAD */
CASE(double, after_overwriting)
{
    void *block = new_victim(size);
    free(block);
    if (size <= SLAB_BLOCK_MAX)
        write_bytes(block, size);
    free_wrongly(block);
}

/* The freed block is written to, freed again and handed out twice, and neither owner frees it.
 * tiny: not caught
 * mid: at once | free(): double free of BAD
 * large, big: not applicable
 * hardened tiny: at once | free(): double free of BAD */
CASE(double, after_overwriting_and_kept)
{
    if (size > SLAB_BLOCK_MAX)
        not_applicable();
    void *block = new_victim(size);
    free(block);
    write_bytes(block, size);
    free(hide(block));
    if (need(malloc(size)) != need(malloc(size)))
        broken("the two blocks are not one");
}

/* The freed block is written to and freed again: it lies in the cache twice, and is handed out
 * twice. The free by its second owner is found.
 * tiny, mid: at once | free(): double free of BAD
 * large, big: not applicable */
CASE(double, after_overwriting_and_reuse)
{
    if (size > SLAB_BLOCK_MAX)
        not_applicable();
    void *block = new_victim(size);
    free(block);
    write_bytes(block, size);
    free(hide(block));
    void *first = need(malloc(size));
    void *second = need(malloc(size));
    free(first);
    free_wrongly(second);
}

/* All free memory has gone back to the system between the two frees.
 * tiny, mid: at once | free(): double free of BAD
 * large: at once or at drain | free(): double free of BAD | free(): invalid pointer BAD: not
 *     allocated by hakmem
 * big: at once | free(): invalid pointer BAD: not allocated by hakmem
 * hardened big: at once | free(): double free of BAD */
MISTAKE(double, after_purge, new_purged_victim(size), free(block))

/* The pages of the block have gone back to the system while its slab is in use: the mark that tells
 * of the first free is lost.
 * tiny, large, big: not applicable
 * mid: at once | free(): double free of BAD */
CASE(double, after_purge_of_pages)
{
    enum { BLOCKS = 16 };
    /* The page in which the block begins, with the mark, has to be wholly free. */
    if (size <= 1024 || size > SLAB_BLOCK_MAX)
        not_applicable();
    size = size > 16384 ? size : 16384;
    void *blocks[BLOCKS], *block;
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = need(malloc(size));
    /* Between two that go as well. */
    block = blocks[BLOCKS / 2 + 2];
    announce(block, block);
    for (int i = 0; i < BLOCKS; i++)
        if (i % 4 != 0)
            free(blocks[i]);
    (void)hakmem_purge();
    free_wrongly(block);
}

/* realloc has moved the contents elsewhere, and the old pointer is freed.
 * tiny, mid, large: at once | free(): double free of BAD
 * big: at once | free(): invalid pointer BAD: not allocated by hakmem
 * hardened big: at once | free(): double free of BAD */
CASE(double, after_realloc_moved)
{
    void *block = new_victim(size);
    void *neighbour = need(malloc(size));
    void *moved = need(realloc(hide(block), 9 * size));
    if (moved == block)
        not_applicable();
    free_wrongly(block);
    free(neighbour);
}

/* realloc to size 0 has freed the block already.
 * all: at once | free(): double free of BAD */
CASE(double, after_realloc_to_nothing)
{
    void *block = new_victim(size);
    if (realloc(hide(block), 0))
        broken("realloc to nothing gives a block");
    free_wrongly(block);
}

/* The block was handed out again in between. The second free takes it from its new owner, which no
 * allocator can see; the new owner's own free is found.
 * all: at once | free(): double free of BAD
 * hardened all: not applicable */
CASE(double, after_reuse)
{
    void *block = new_victim(size);
    free(block);
    void *reused = need(malloc(size));
    if (reused != block)
        not_applicable();
    free(hide(block));
    free_wrongly(reused);
}

static void *freed_at_exit;

static void free_at_exit(void)
{
    free_wrongly(freed_at_exit);
}

/* The second free comes from a function that exit calls.
 * all: at once | free(): double free of BAD */
CASE(double, at_exit)
{
    freed_at_exit = new_victim(size);
    atexit(free_at_exit);
    free(freed_at_exit);
}

/* A block is freed twice in a row.
 * all: at once | free(): double free of BAD */
MISTAKE(double, at_once, new_victim(size), free(block), free(block))

/* The second time, the block is given to operator delete with an alignment.
 * all: at once | free(): double free of BAD */
MISTAKE(double, by_aligned_delete, new_victim(size), free(block), _ZdlPvSt11align_val_t(block, 16))

/* The second time, the block is given to operator delete.
 * all: at once | free(): double free of BAD */
MISTAKE(double, by_delete, new_victim(size), free(block), _ZdlPv(block))

/* The second time, the block is given to operator delete[].
 * all: at once | free(): double free of BAD */
MISTAKE(double, by_delete_array, new_victim(size), free(block), _ZdaPv(block))

/* The second time, the block is given to free_aligned_sized.
 * all: at once | free(): double free of BAD */
MISTAKE(
    double, by_free_aligned_sized, announced(memalign(64, size)),
    free_aligned_sized(block, 64, size), free_aligned_sized(block, 64, size))

/* The second time, the block is given to free_sized.
 * all: at once | free(): double free of BAD */
MISTAKE(double, by_free_sized, new_victim(size), free(block), free_sized(block, size))

/* How many bytes there are from the start of the block is asked for after it was freed.
 * all: not caught
 * hardened all: at once | malloc_object_size(): double free of BAD */
MISTAKE(double, by_object_size, new_victim(size), free(block), malloc_object_size(block))

/* The block is given to realloc after it was freed.
 * all: at once | realloc(): double free of BAD */
MISTAKE(double, by_realloc, new_victim(size), free(block), hide(realloc(block, 2 * size)))

/* The block is given to realloc with size 0 after it was freed.
 * all: at once | realloc(): double free of BAD */
MISTAKE(double, by_realloc_to_nothing, new_victim(size), free(block), hide(realloc(block, 0)))

/* The second time, the block is given to operator delete with its size.
 * all: at once | free(): double free of BAD */
MISTAKE(double, by_sized_delete, new_victim(size), free(block), _ZdlPvm(block, size))

/* The size of the block is asked for after it was freed.
 * all: at once | malloc_usable_size(): double free of BAD */
MISTAKE(double, by_usable_size, new_victim(size), free(block), malloc_usable_size(block))

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

/* The second free comes after a hundred thousand calls of malloc and free with other sizes. Their
 * slabs may lie where a large one lay.
 * tiny, mid: at once | free(): double free of BAD
 * large: at once or at drain or at exit or not caught | free(): double free of BAD | free():
 *     invalid pointer BAD: not allocated by hakmem
 * big: at once | free(): double free of BAD | free(): invalid pointer BAD: not allocated by hakmem
 */
CASE(double, delayed)
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

/* A double free in a program that never writes to its blocks: they all carry the mark of their last
 * free, so that it says little, and soon free no longer searches for every one of them.
 * tiny: at drain | free(): double free of BAD
 * mid, large, big: not applicable
 * hardened tiny: at once | free(): double free of BAD */
CASE(double, in_program_that_never_writes)
{
    enum { BLOCKS = 100, ROUNDS = 20, BETWEEN = 20 };
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

/* The block was handed out again in between, and its new owner never frees it.
 * all: not caught
 * hardened all: not applicable */
CASE(double, of_a_new_owners_block)
{
    void *block = new_victim(size);
    free(block);
    if (need(malloc(size)) != block)
        not_applicable();
    free_wrongly(block);
}

/* A block from memalign is freed twice.
 * all: at once | free(): double free of BAD */
CASE(double, of_aligned)
{
    void *block = need(memalign(4096, size));
    (void)need(memalign(4096, size));
    announce(block, block);
    free(block);
    free_wrongly(block);
}

/* A block from calloc is freed twice.
 * all: at once | free(): double free of BAD */
MISTAKE(double, of_calloc, announced(calloc(1, size)), free(block), free(block))

/* A block from operator new is deleted twice.
 * all: at once | free(): double free of BAD */
MISTAKE(double, of_new, announced(_Znwm(size)), _ZdlPv(block), _ZdlPv(block))

/* A block of no bytes is freed twice.
 * any: at once | free(): double free of BAD */
MISTAKE(double, of_nothing, new_victim(0), free(block), free(block))

/* realloc has moved a block, and is given the old pointer again.
 * all: at once | realloc(): double free of BAD | realloc(): invalid pointer BAD: not allocated by
 *     hakmem */
CASE(double, realloc_of_moved)
{
    char *block = need(malloc(size));
    announce(block, block);
    char *moved = need(realloc(block, 20 * size));
    if (moved == block)
        not_applicable();
    (void)need(realloc(hide(block), 20 * size));
    survived();
}

/* The process ends by _exit right after the second free, without a last look at its caches.
 * all: at once | free(): double free of BAD */
CASE(double, then_immediate_exit)
{
    void *block = new_victim(size);
    free(block);
    free_wrongly(block);
    _exit(0);
}

/* Ten thousand blocks of all sizes come and go between the two frees.
 * tiny, mid, large: at once | free(): double free of BAD
 * big: at once | free(): double free of BAD | free(): invalid pointer BAD: not allocated by hakmem
 *     | free(): invalid pointer BAD: inside a block of N bytes at BASE */
CASE(double, with_delay_of_many_sizes)
{
    void *block = new_victim(size);
    free(block);
    for (size_t i = 0; i < 10000; i++) {
        size_t other = 1 + i * 7919 % 70000;
        if (other / 16 != size / 16)
            free(need(malloc(other)));
    }
    free_wrongly(block);
}

/* So many blocks are freed in between that the thread's cache overflows and memory goes back.
 * tiny, mid: at once | free(): double free of BAD
 * large, big: at once | free(): double free of BAD | free(): invalid pointer BAD: not allocated by
 *     hakmem */
CASE(double, with_many_between)
{
    size_t count = many(size);
    void **others = need(malloc(count * sizeof(void *)));
    void *block = new_victim(size);
    for (size_t i = 0; i < count; i++)
        others[i] = need(malloc(size));
    free(block);
    for (size_t i = 0; i < count; i++)
        free(others[i]);
    free_wrongly(block);
}

/* Another block is freed between the two frees.
 * tiny, mid, large: at once | free(): double free of BAD
 * big: at once | free(): double free of BAD | free(): invalid pointer BAD: not allocated by hakmem
 */
CASE(double, with_one_between)
{
    void *other = need(malloc(size));
    void *block = new_victim(size);
    free(block);
    free(other);
    free_wrongly(block);
}

/* Ten other blocks are freed between the two frees.
 * tiny, mid, large: at once | free(): double free of BAD
 * big: at once | free(): double free of BAD | free(): invalid pointer BAD: not allocated by hakmem
 */
CASE(double, with_ten_between)
{
    void *others[10];
    for (int i = 0; i < 10; i++)
        others[i] = need(malloc(size));
    void *block = new_victim(size);
    free(block);
    for (int i = 0; i < 10; i++)
        free(others[i]);
    free_wrongly(block);
}
