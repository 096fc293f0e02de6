/* Owns the cases that are not caught, so that the documentation can say so: behaviour 24.
 */
#include "misuse.h"

#include <unistd.h>

/* The second free takes away the block of whoever owns the address now. */
static void limit_second_free_hits_a_new_owner(size_t size)
{
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    void *reused = need(malloc(size));
    if (reused != block) {
        not_applicable();
    }
    free(hide(block));
    survived();
}

/* The mark in the freed block was destroyed, and nobody gives back the two blocks that are one. */
static void limit_overwritten_and_handed_out_twice(size_t size)
{
    if (size > 32768) {
        not_applicable();
    }
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    memset(hide(block), 0, size);
    free(hide(block));
    survived();
    (void)need(malloc(size));
    (void)need(malloc(size));
}

/* A pointer that waits in the cache is not looked at when the program ends without its exit. */
static void limit_interior_before_immediate_exit(size_t size)
{
    char *block = need(malloc(size));
    announce(block + 16, block);
    free(hide(block + 16));
    survived();
    _exit(0);
}

const struct misuse_case limit_cases[] = {
    {"limit_second_free_hits_a_new_owner", limit_second_free_hits_a_new_owner},
    {"limit_overwritten_and_handed_out_twice", limit_overwritten_and_handed_out_twice},
    {"limit_interior_before_immediate_exit", limit_interior_before_immediate_exit},
    {NULL, NULL},
};
