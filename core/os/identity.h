/* Who the calling thread is: its id, and the number of the process that it lives in.
 *
 * The kernel's thread ids alone do not tell: a child made by fork, _Fork or a bare clone has a copy
 * of the memory in which its parent's ids stand, and its own thread has another id, which may even
 * be that of a thread of the parent (in a new pid namespace the first one is always 1). So each
 * process has a number, and an identity is both. The number lies in memory that the kernel fills
 * with zeroes in a child (MADV_WIPEONFORK): the first thread there that asks for its identity
 * finds no number, and makes a new one. Nothing has to run in the parent, and no handler in the
 * child.
 *
 * At that moment the threads of the parent are gone. Structures that they were changing are put
 * right before any thread gets a new identity, and without one no thread gets a lock: see
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

/* Number of this process, 0 when nobody has noticed yet that it is a new one. */
ALWAYS_INLINE uint32_t identity_process_number(void)
{
    return ATOMIC_LOAD_RELAXED(&ATOMIC_LOAD_ACQUIRE(&identity_process)->number);
}

/* The calling thread's identity: the number of the process above its id. No other thread that runs
 * here has it, and none that ran in a parent. */
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

/* From now on the number is one that fork wipes, if the system can. In each new process `repair`
 * runs once, before any thread has an identity: `before` is the id in the parent of the calling
 * thread, 0 when it had none, and `now` the one that it gets. Signals are blocked. Called once. */
void identity_start(void (*repair)(uint32_t before, uint32_t now));

/* For handlers of fork, where the system could not wipe the number: the child sees that by a flag
 * that the parent sets. */
void identity_before_fork(void);
void identity_in_child(void);

#endif
