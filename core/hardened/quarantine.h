/* The quarantine of large and big blocks: freed ones wait there, so that their addresses are not
 * used again soon. First in, first out, bounded in number and in bytes, except that the youngest
 * blocks wait however long they are.
 *
 * No lock: the thread that takes a block out owns it. In a child of fork the same blocks wait.
 */
#ifndef HARDENED_QUARANTINE_H
#define HARDENED_QUARANTINE_H

#include "base/atomic.h"
#include "base/macros.h"

enum { QUARANTINE_SLOTS = 256 };

/* All atomic, any thread: release on putting in pairs with acquire on taking out. */
struct quarantine_queue {
    void *slots[QUARANTINE_SLOTS];
    uint64_t put;   /* blocks put in so far */
    uint64_t taken; /* all turns below are no longer there */
    size_t bytes;
};

/* Const, so that the function pointers are in read-only memory. */
struct quarantine {
    struct quarantine_queue *queue;
    size_t bytes_max;
    size_t (*bytes_of)(const void *freed); /* constant while the block waits */
    void (*end)(void *freed);              /* called with each block that stops waiting */
    unsigned youngest; /* so many of the last blocks wait, whatever their bytes */
};

/* Puts a block in; the oldest ones leave while there are too many, or too many bytes. To be called
 * without locks. */
void quarantine_put(const struct quarantine *quarantine, void *freed);

/* Ends the waiting of blocks until at most `bytes_max` wait. To be called without locks. */
void quarantine_release(const struct quarantine *quarantine, size_t bytes_max);

/* Debug walker, while no thread puts in or takes out; calls `look` with each waiting block. */
void quarantine_check(const struct quarantine *quarantine, void (*look)(const void *waiting));

#endif
