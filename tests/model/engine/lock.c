/* The model of the lock, for what is built with shim/lock: it knows who holds it, and sees misuse.
 */
#include "os/lock.h"
#include "engine/engine.h"
#include "engine/report.h"

enum { LOCKS_MAX = 1024 };

void (*model_between_locks)(void);

static void between_locks(void)
{
    if (model_between_locks)
        model_between_locks();
}

#define CODE __builtin_return_address(0)

/* What happened before the last release of each lock. Its word holds the id of the holder. */
static struct {
    const struct lock *lock;
    uint32_t execution;
    struct clock released;
} releases[LOCKS_MAX];

static struct clock *released_of(const struct lock *lock)
{
    size_t slot = ((uintptr_t)lock >> 3) * 0x9e3779b97f4a7c15u >> 54;
    while (releases[slot].execution == shadow_execution() && releases[slot].lock != lock)
        slot = (slot + 1) % LOCKS_MAX;
    if (releases[slot].execution != shadow_execution())
        releases[slot].released = (struct clock){{0}};
    releases[slot].lock = lock;
    releases[slot].execution = shadow_execution();
    return &releases[slot].released;
}

static void take(struct lock *lock, uint32_t word, const void *code)
{
    search_step((struct op){OP_LOCK, lock, "lock", code});
    if (lock->word)
        model_fail("a lock is held that nobody will release, at %s", report_place(code));
    if (exploring) {
        shadow_location(lock); /* so that the word is put back at the end */
        clock_join(shadow_clock(), released_of(lock));
    }
    lock->word = word;
}

/* A step of its own, so that fork can come while the lock is held; it conflicts with nothing else.
 */
static void open_lock(struct lock *lock)
{
    search_step((struct op){OP_READ, (char *)lock + 1, "unlock", CODE});
    lock->word = 0;
    search_lock_released(lock);
    if (exploring) {
        *released_of(lock) = *shadow_clock();
        shadow_tick();
    }
}

/* Invariant 2 of ARCHITECTURE.md: no thread holds two locks. */
void lock_acquire(struct lock *lock)
{
    uint32_t self = identity_thread(identity_self());
    if (system_locks_held[current])
        model_fail("a thread takes a second lock, at %s", report_place(CODE));
    between_locks();
    take(lock, self, CODE);
    system_locks_held[current] = 1;
}

void lock_release(struct lock *lock)
{
    if (lock->word != identity_thread(own_identity))
        model_fail("a lock is released that is not held, at %s", report_place(CODE));
    system_locks_held[current] = 0;
    open_lock(lock);
    between_locks();
}

bool lock_is_lost(const struct lock *lock, uint32_t before)
{
    return lock->word && lock->word != before;
}

void lock_inherit(struct lock *lock, uint32_t before, uint32_t now)
{
    if (!lock->word)
        return;
    shadow_location(lock); /* so that the word is put back at the end */
    lock->word = lock->word == before ? now : 0;
}
