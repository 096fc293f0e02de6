/* Limbo: where freed blocks wait whose addresses shall not be used again soon. First in, first out,
 * bounded in number and in bytes, but for the youngest: one longer than the bound waits, too.
 *
 * No lock: who has taken something out has it. In a child of fork the same blocks wait.
 */
#ifndef HARDENED_LIMBO_H
#define HARDENED_LIMBO_H

#include "base/atomic.h"
#include "base/macros.h"

enum { LIMBO_SLOTS = 256 };

/* All atomic, any thread: release on putting in pairs with acquire on taking out. */
struct limbo_queue {
    void *slots[LIMBO_SLOTS];
    uint64_t put;   /* so many so far */
    uint64_t taken; /* those that came before are no longer there */
    size_t bytes;
};

/* Const: functions that are called stand where nobody can write. */
struct limbo {
    struct limbo_queue *queue;
    size_t bytes_max;
    size_t (*bytes_of)(const void *freed); /* the same for as long as it waits */
    void (*end)(void *freed);              /* called with what waits no more */
    unsigned youngest;                     /* so many wait, however long they are */
};

/* Puts it in; what was there for longest goes for it, while there are too many or too long ones.
 * To be called without locks. */
void limbo_put(const struct limbo *limbo, void *freed);

/* Ends the waiting of all but so many bytes. To be called without locks. */
void limbo_release(const struct limbo *limbo, size_t bytes_max);

/* Debug walker, while nobody puts in or takes out; `look` is called with each that waits. */
void limbo_check(const struct limbo *limbo, void (*look)(const void *waiting));

#endif
