#include "misuse.h"

#include <unistd.h>

/* A pointer is freed that lies behind the last block of a slab, where no block fits any more.
 * tiny: at flush | free(): invalid pointer BAD: not allocated by hakmem
 * mid: at once | free(): invalid pointer BAD: not allocated by hakmem
 * large, big: not applicable
 * hardened tiny: at once | free(): invalid pointer BAD: not allocated by hakmem */
CASE(invalid, behind_the_last_block)
{
    const uintptr_t unit = (uintptr_t)64 << 10;
    if (size > SLAB_BLOCK_MAX)
        not_applicable();
    /* Blocks whose size does not divide 64 KiB leave a rest at the end of it. */
    char *block = need(malloc(size <= 1024 ? 40 : 5000));
    char *rest = (char *)(((uintptr_t)block | (unit - 1)) & ~(uintptr_t)15);
    (void)need(malloc(size <= 1024 ? 40 : 5000));
    free_foreign(rest);
}

/* A pointer 8 bytes into a block of no bytes is freed.
 * any: at flush | free(): invalid pointer BAD: misaligned
 * hardened any: at once | free(): invalid pointer BAD: misaligned */
CASE(invalid, inside_nothing)
{
    free_inside(0, 8);
}

/* realloc is given a pointer into a block.
 * all: at once | realloc(): invalid pointer BAD: inside a block of N bytes at BASE */
INSIDE(invalid, interior_by_realloc, 16, hide(realloc(inside, 2 * size)))

/* The size is asked for at a pointer into a block.
 * all: at once | malloc_usable_size(): invalid pointer BAD: inside a block of N bytes at BASE */
INSIDE(invalid, interior_by_usable_size, 16, malloc_usable_size(inside))

/* A pointer 16 bytes into a block is freed.
 * tiny: at flush | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * mid, large, big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE */
INSIDE(invalid, interior_first, 16, free(inside))

static void *end_process(void *unused)
{
    (void)unused;
    exit(0);
}

/* The main thread frees a pointer into a block, and another thread ends the process by exit: only
 * that one's cache is looked at.
 * tiny: not caught
 * mid, large, big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE */
CASE(invalid, interior_freed_before_exit_by_another)
{
    free_inside(size, 16);
    run_in_thread(end_process, NULL);
}

/* A freed pointer into a block is handed out by the next malloc, and stays in use.
 * tiny: not caught
 * mid, large, big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE */
CASE(invalid, interior_handed_out_again)
{
    char *block = need(malloc(size));
    announce(block + 16, block);
    free(hide(block + 16));
    if (need(malloc(size)) != block + 16)
        broken("another block comes first");
}

/* A thread's first call frees a pointer into a block.
 * all: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE */
CASE(invalid, interior_in_new_thread)
{
    char *block = need(malloc(size));
    announce(block + 16, block);
    run_in_thread(thread_frees_wrongly, block + 16);
}

/* A pointer into a block is freed by a thread that is still there when the process exits: all of
 * its cache can be looked at only if it has parked its heap.
 * tiny, mid: not caught or at once | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * large, big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE */
CASE(invalid, interior_in_running_thread)
{
    static struct helper helper;
    helper_start(&helper);
    helper_free(&helper, need(malloc(size)));
    char *block = need(malloc(size));
    announce(block + 16, block);
    helper_free(&helper, block + 16);
}

/* A pointer to the last 16 bytes of a block is freed.
 * tiny: at flush | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * mid, large, big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE */
INSIDE(invalid, interior_last, (size - 1) / 16 * 16, free(inside))

/* A pointer into the middle of a block is freed.
 * tiny: at flush | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * mid, large, big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE */
INSIDE(invalid, interior_middle, size / 2 / 16 * 16, free(inside))

/* A pointer into a block from memalign is freed.
 * tiny: at flush | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * mid, large, big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE */
CASE(invalid, interior_of_aligned)
{
    char *block = need(memalign(256, size));
    announce(block + 16, block);
    free_wrongly(block + 16);
}

/* A thread frees a pointer into a block. Before it ends, all blocks around are freed rightly, and
 * their slab goes back, unless others use it: what the pointer lay in may not be known any more.
 * tiny, mid: at once or at exit | free(): double free of BAD | free(): invalid pointer BAD: inside
 *     a block of N bytes at BASE
 * large, big: not applicable */
CASE(invalid, interior_of_lost_slab)
{
    if (size > SLAB_BLOCK_MAX)
        not_applicable();
    struct helper helper;
    helper_start(&helper);
    helper_free(&helper, need(malloc(2 * size)));
    char *block = need(malloc(size));
    announce(block + 16, block);
    helper_free(&helper, block + 16);
    free(block);
    (void)hakmem_purge();
    survived();
    helper_end(&helper);
}

/* A pointer into a block is freed, and the process ends by _exit, without a last look at its
 * caches.
 * tiny: not caught
 * mid, large, big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE */
CASE(invalid, interior_then_immediate_exit)
{
    free_inside(size, 16);
    _exit(0);
}

/* A pointer into the middle of a block is freed, and then a hundred thousand blocks come and go.
 * tiny: at once or at flush or at drain | free(): invalid pointer BAD: inside a block of N bytes at
 *     BASE
 * mid, large, big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE */
CASE(invalid, interior_with_many_between)
{
    char *block = need(malloc(size));
    announce(block + size / 2 / 16 * 16, block);
    free(hide(block + size / 2 / 16 * 16));
    for (size_t i = 0; i < 100000; i++)
        free(need(malloc(1 + i * 37 % 2000)));
    survived();
}

/* A pointer to the very last byte of the first superslab, 2 MiB full of blocks, is freed: what lies
 * behind it may not be mapped.
 * tiny: at flush or ends by SIGSEGV | free(): invalid pointer BAD: misaligned
 * mid: at once | free(): invalid pointer BAD: misaligned
 * large, big: not applicable
 * hardened tiny, mid: not applicable */
CASE(invalid, misaligned_at_end_of_heap)
{
    if (size > SLAB_BLOCK_MAX)
        not_applicable();
    const uintptr_t region = (uintptr_t)2 << 20;
    char *block, *base = need(malloc(size));
    uintptr_t end = ((uintptr_t)base | (region - 1)) + 1;
    /* 512 bytes, or 16 KiB: sizes that divide a slab. */
    size = size <= 1024 ? 512 : 16384;
    for (size_t taken = 0; taken < 2 * region; taken += size) {
        block = need(malloc(size));
        if ((uintptr_t)block + size == end) {
            announce(block + size - 1, block);
            free_wrongly(block + size - 1);
            return;
        }
    }
    not_applicable();
}

/* A pointer eight bytes into a block is freed.
 * tiny: at flush | free(): invalid pointer BAD: misaligned
 * mid, large: at once | free(): invalid pointer BAD: misaligned
 * big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once | free(): invalid pointer BAD: misaligned */
INSIDE(invalid, misaligned_by_eight, 8, free(inside))

/* A pointer one byte into a block is freed.
 * tiny: at flush | free(): invalid pointer BAD: misaligned
 * mid, large: at once | free(): invalid pointer BAD: misaligned
 * big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once | free(): invalid pointer BAD: misaligned */
INSIDE(invalid, misaligned_by_one, 1, free(inside))

/* realloc is given a pointer eight bytes into a block.
 * tiny, mid, large: at once | realloc(): invalid pointer BAD: misaligned
 * big: at once | realloc(): invalid pointer BAD: inside a block of N bytes at BASE */
INSIDE(invalid, misaligned_by_realloc, 8, hide(realloc(inside, 2 * size)))

/* The size is asked for at a pointer eight bytes into a block.
 * tiny, mid, large: at once | malloc_usable_size(): invalid pointer BAD: misaligned
 * big: at once | malloc_usable_size(): invalid pointer BAD: inside a block of N bytes at BASE */
INSIDE(invalid, misaligned_by_usable_size, 8, malloc_usable_size(inside))

/* An odd address is freed in pages that were a large block and are free.
 * tiny, mid, big: not applicable
 * large: at once | free(): invalid pointer BAD: misaligned */
CASE(invalid, misaligned_in_free_pages)
{
    if (size <= SLAB_BLOCK_MAX || size >= (size_t)2 << 20)
        not_applicable();
    /* Not of a size of which several blocks share a slab. */
    char *block = need(malloc(size * 10));
    announce(block + 9, block);
    free(block);
    (void)hakmem_purge();
    free_wrongly(block + 9);
}

/* A thread's first call frees a pointer to an odd address in a block.
 * tiny, mid, large: at once | free(): invalid pointer BAD: misaligned
 * big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE */
CASE(invalid, misaligned_in_new_thread)
{
    char *block = need(malloc(size));
    announce(block + size / 2 / 16 * 16 + 9, block);
    run_in_thread(thread_frees_wrongly, block + size / 2 / 16 * 16 + 9);
}

/* A pointer to an odd address in the middle of a block is freed.
 * tiny: at flush | free(): invalid pointer BAD: misaligned
 * mid, large: at once | free(): invalid pointer BAD: misaligned
 * big: at once | free(): invalid pointer BAD: inside a block of N bytes at BASE
 * hardened tiny: at once | free(): invalid pointer BAD: misaligned */
INSIDE(invalid, misaligned_middle, size / 2 / 16 * 16 + 9, free(inside))

/* The block behind the newest one is freed: malloc has never handed it out.
 * tiny: at drain | free(): double free of BAD | free(): invalid pointer BAD: inside a block of N
 *     bytes at BASE
 * mid, large: at once | free(): double free of BAD | free(): invalid pointer BAD: inside a block of
 *     N bytes at BASE | free(): invalid pointer BAD: not allocated by hakmem
 * big: at once or not applicable | free(): invalid pointer BAD: not allocated by hakmem | free():
 *     double free of BAD
 * hardened tiny, mid, large: at once | free(): invalid pointer BAD: misaligned | free(): invalid
 *     pointer BAD: inside a block of N bytes at BASE */
CASE(invalid, never_handed_out)
{
    char *block = need(malloc(size));
    char *next = behind(block);
    announce(next, block);
    free_wrongly(next);
}

/* The block behind the newest one is freed, handed out twice, and freed by neither owner.
 * tiny: not caught
 * mid, large: at once | free(): double free of BAD | free(): invalid pointer BAD: inside a block of
 *     N bytes at BASE | free(): invalid pointer BAD: not allocated by hakmem
 * big: at once or not applicable | free(): invalid pointer BAD: not allocated by hakmem | free():
 *     double free of BAD
 * hardened tiny, mid, large: at once | free(): invalid pointer BAD: misaligned | free(): invalid
 *     pointer BAD: inside a block of N bytes at BASE */
CASE(invalid, never_handed_out_and_kept)
{
    char *block = need(malloc(size));
    char *next = behind(block);
    announce(next, block);
    free(hide(next));
    if (need(malloc(size)) != need(malloc(size)))
        broken("the two blocks are not one");
}
