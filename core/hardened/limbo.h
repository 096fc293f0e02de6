/* Limbo: the quarantine of large and big blocks. Freed ones wait there, so that their addresses are
 * not used again soon. First in, first out, bounded in number and in bytes, except that the
 * youngest blocks wait however long they are.
 *
 * No lock: the thread that takes a block out owns it. In a child of fork the same blocks wait.
 */
#ifndef HARDENED_LIMBO_H
#define HARDENED_LIMBO_H

#include "base/atomic.h"
#include "base/macros.h"

enum { LIMBO_SLOTS = 256 };

/* All atomic, any thread: release on putting in pairs with acquire on taking out. */
struct limbo_queue {
    void *slots[LIMBO_SLOTS];
    uint64_t put;   /* blocks put in so far */
    uint64_t taken; /* all turns below are no longer there */
    size_t bytes;
};

/* Const, so that the function pointers are in read-only memory. */
struct limbo {
    struct limbo_queue *queue;
    size_t bytes_max;
    size_t (*bytes_of)(const void *freed); /* constant while the block waits */
    void (*end)(void *freed);              /* called with each block that stops waiting */
    unsigned youngest; /* so many of the last blocks wait, whatever their bytes */
};

/* Puts a block in; the oldest ones leave while there are too many, or too many bytes. To be called
 * without locks. */
void limbo_put(const struct limbo *limbo, void *freed);

/* Ends the waiting of blocks until at most `bytes_max` wait. To be called without locks. */
void limbo_release(const struct limbo *limbo, size_t bytes_max);

/* Debug walker, while no thread puts in or takes out; calls `look` with each waiting block. */
void limbo_check(const struct limbo *limbo, void (*look)(const void *waiting));

#endif
