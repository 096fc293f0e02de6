/* The calling thread's identity: its id, and the number of its process.
 *
 * The kernel's thread ids alone are not enough: a child made by fork, _Fork or a bare clone has a
 * copy of the memory with its parent's ids, and its own thread has another id, which may even be
 * that of a thread of the parent (in a new pid namespace the first one is always 1). So each
 * process has a number as well. The number lies in memory that the kernel fills with zeroes in a
 * child (MADV_WIPEONFORK): the first thread there that asks for its identity finds no number, and
 * makes a new one. Nothing has to run in the parent, and no handler in the child.
 *
 * At that moment the threads of the parent are gone. Structures that they were changing are
 * repaired before any thread gets a new identity, and without one no thread gets a lock: see
 * thread/fork.c.
 *
 * A child that shares the memory of its parent (vfork, posix_spawn, CLONE_VM) shares its number and
 * the identity of the thread that made it.
 */
#ifndef OS_IDENTITY_H
#define OS_IDENTITY_H

#include "base/atomic.h"
#include "base/macros.h"

struct process_number {
    uint32_t number; /* atomic, any thread: 0 in a new process; release pairs with acquire */
    uint32_t forked; /* set by the forking thread: see identity_in_child */
};

/* Atomic, any thread: release on store, acquire on load; moves once, in identity_start. */
extern struct process_number *identity_process;

/* 0 before the thread asks for the first time. Initial-exec TLS. */
extern __thread uint64_t own_identity __attribute__((tls_model("initial-exec")));

/* Gives the thread an identity in this process. */
SLOW_PATH uint64_t identity_renew(void);

/* Number of this process; 0: it is new, and no thread has asked yet. */
ALWAYS_INLINE uint32_t identity_process_number(void)
{
    return ATOMIC_LOAD_RELAXED(&ATOMIC_LOAD_ACQUIRE(&identity_process)->number);
}

/* The calling thread's identity: the number of the process above its id. It differs from those of
 * all other threads, here and in parent processes. */
ALWAYS_INLINE uint64_t identity_self(void)
{
    uint64_t self = own_identity;
    uint32_t process = identity_process_number();
    return LIKELY(process != 0 && self >> 32 == process) ? self : identity_renew();
}

/* The id in an identity, above 0 and below 2^30. */
ALWAYS_INLINE uint32_t identity_thread(uint64_t identity)
{
    return (uint32_t)identity;
}

/* True when the identity is one of this process. */
ALWAYS_INLINE bool identity_is_local(uint64_t identity)
{
    return identity >> 32 == identity_process_number();
}

/* Puts the number where fork wipes it, if the system can. In each new process `repair` runs once,
 * before any thread has an identity, with signals blocked: `before` is the id that the calling
 * thread had in the parent, 0 if none, and `now` its new one. To be called once. */
void identity_start(void (*repair)(uint32_t before, uint32_t now));

/* For handlers of fork, if the system cannot wipe the number: a flag that the parent sets tells the
 * child. */
void identity_before_fork(void);
void identity_in_child(void);

#endif
