/* Limbo: where freed blocks wait whose addresses shall not be used again soon. First in, first out,
 * bounded in number and in bytes of addresses; they have no memory meanwhile.
 *
 * No lock: who has taken something out has it. In a child of fork the same blocks wait.
 */
#ifndef SPAN_LIMBO_H
#define SPAN_LIMBO_H

#include "base/atomic.h"
#include "base/macros.h"

enum { LIMBO_SLOTS = 256 };

/* All atomic, any thread: release on putting in pairs with acquire on taking out. */
struct limbo {
    void *slots[LIMBO_SLOTS];
    uint64_t put;   /* so many so far */
    uint64_t taken; /* those that came before are no longer there */
    size_t bytes;
};

/* Puts it in; returns what has to go for it, which was there for longest, or NULL. */
void *limbo_put(struct limbo *limbo, void *freed, size_t bytes);

/* Takes out what is there for longest, while there are more bytes than that; NULL: there are not.
 * The caller tells how long it was, as he does of what limbo_put returns. */
void *limbo_take(struct limbo *limbo, size_t bytes_max);
void limbo_tell(struct limbo *limbo, size_t bytes);

#endif
