/* Owns the cases in which a block is given back twice, or used for a call after it was given back:
 * behaviour 24.
 */
#include "misuse.h"

#include <sys/wait.h>
#include <unistd.h>

/* How many other blocks it takes to be sure that a thread's cache of this size was flushed. */
static size_t many(size_t size)
{
    size_t count = ((size_t)64 << 20) / size;
    return count > 20000 ? 20000 : count < 40 ? 40 : count;
}

static void double_at_once(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    free_again(block);
}

static void double_with_one_between(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    void *other = need(malloc(size));
    announce(block, block);
    free(block);
    free(other);
    free_again(block);
}

static void double_with_ten_between(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    void *others[10];
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        others[i] = need(malloc(size));
    }
    announce(block, block);
    free(block);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        free(others[i]);
    }
    free_again(block);
}

static void double_with_many_between(size_t size)
{
    make_room(size);
    size_t count = many(size);
    void **others = need(malloc(count * sizeof(void *)));
    void *block = need(malloc(size));
    for (size_t i = 0; i < count; i++) {
        others[i] = need(malloc(size));
    }
    announce(block, block);
    free(block);
    for (size_t i = 0; i < count; i++) {
        free(others[i]);
    }
    free_again(block);
}

/* The neighbours stay in use, so that the page of the block cannot go back. */
static void double_beside_neighbours(size_t size, void (*between)(void))
{
    make_room(size);
    void *before = need(malloc(size));
    void *block = need(malloc(size));
    void *after = need(malloc(size));
    announce(block, block);
    free(block);
    between();
    free_again(block);
    free(before);
    free(after);
}

static void purge(void)
{
    (void)hakmem_purge();
}

static void double_after_flush(size_t size)
{
    double_beside_neighbours(size, hakmem_thread_flush);
}

static void double_after_purge(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    (void)hakmem_purge();
    free_again(block);
}

static void double_after_purge_beside_neighbours(size_t size)
{
    double_beside_neighbours(size, purge);
}

/* The address is handed out again in between: the second free takes the new owner's block away,
 * which nobody can see; that owner's own free is the double one. */
static void double_after_reuse(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    void *reused = need(malloc(size));
    if (reused != block) {
        not_applicable();
    }
    free(hide(block));
    free_again(reused);
}

static void double_after_realloc_moved(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    void *pin = need(malloc(size));
    announce(block, block);
    void *moved = need(realloc(hide(block), 9 * size));
    if (moved == block) {
        not_applicable();
    }
    free_again(block);
    free(moved);
    free(pin);
}

static void double_after_realloc_to_nothing(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    announce(block, block);
    if (realloc(hide(block), 0) != NULL) {
        broken("realloc to nothing gives a block");
    }
    free_again(block);
}

static void double_of_aligned(size_t size)
{
    make_room(size);
    void *block = need(memalign(4096, size));
    announce(block, block);
    free(block);
    free_again(block);
}

static void double_of_calloc(size_t size)
{
    make_room(size);
    void *block = need(calloc(1, size));
    announce(block, block);
    free(block);
    free_again(block);
}

static void double_by_realloc(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    void *volatile result = realloc(hide(block), 2 * size);
    (void)result;
    survived();
}

static void double_by_usable_size(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    (void)malloc_usable_size(hide(block));
    survived();
}

static void double_by_delete(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    _ZdlPv(hide(block));
    survived();
}

static void double_by_free_sized(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    free_sized(hide(block), size);
    survived();
}

static void *block_for_exit;

static void free_at_exit(void)
{
    free_again(block_for_exit);
}

static void double_at_exit(size_t size)
{
    make_room(size);
    block_for_exit = need(malloc(size));
    atexit(free_at_exit);
    announce(block_for_exit, block_for_exit);
    free(block_for_exit);
}

/* The child has its own copy of the heap, in which the block is free already. */
static void double_in_forked_child(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    pid_t child = fork();
    if (child == 0) {
        free_again(block);
        exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        broken("no child");
    }
    if (WIFSIGNALED(status)) {
        raise(WTERMSIG(status));
    }
}

/* Two mistakes: the freed block is written to, which may destroy what told that it was free. */
static void double_after_overwriting(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    if (size <= 32768) {
        memset(hide(block), 0xff, size);
    }
    free_again(block);
}

static void double_after_overwriting_with_one_between(size_t size)
{
    make_room(size);
    void *block = need(malloc(size));
    void *other = need(malloc(size));
    announce(block, block);
    free(block);
    free(other);
    if (size <= 32768) {
        memset(hide(block), 0, size);
    }
    free_again(block);
}

/* The block lies in the cache twice and is handed out twice; its second owner frees it again. */
static void double_after_overwriting_and_reuse(size_t size)
{
    make_room(size);
    if (size > 32768) {
        not_applicable();
    }
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    memset(hide(block), 0, size);
    free(hide(block));
    void *first = need(malloc(size));
    void *second = need(malloc(size));
    free(first);
    free(second);
    survived();
}

const struct misuse_case double_cases[] = {
    {"double_at_once", double_at_once},
    {"double_with_one_between", double_with_one_between},
    {"double_with_ten_between", double_with_ten_between},
    {"double_with_many_between", double_with_many_between},
    {"double_after_flush", double_after_flush},
    {"double_after_purge", double_after_purge},
    {"double_after_purge_beside_neighbours", double_after_purge_beside_neighbours},
    {"double_after_reuse", double_after_reuse},
    {"double_after_realloc_moved", double_after_realloc_moved},
    {"double_after_realloc_to_nothing", double_after_realloc_to_nothing},
    {"double_of_aligned", double_of_aligned},
    {"double_of_calloc", double_of_calloc},
    {"double_by_realloc", double_by_realloc},
    {"double_by_usable_size", double_by_usable_size},
    {"double_by_delete", double_by_delete},
    {"double_by_free_sized", double_by_free_sized},
    {"double_at_exit", double_at_exit},
    {"double_in_forked_child", double_in_forked_child},
    {"double_after_overwriting", double_after_overwriting},
    {"double_after_overwriting_with_one_between", double_after_overwriting_with_one_between},
    {"double_after_overwriting_and_reuse", double_after_overwriting_and_reuse},
    {NULL, NULL},
};
