/* See thread.h. */
#include "os/thread.h"

#include <errno.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "os/identity.h"
#include "os/os.h"
#include "os/syscall.h"

/* Bytes. MARGIN: of thread-local variables around one whose address is known, and of what the C
 * library keeps at the thread pointer. SPAN_MAX: a program has variables of its own between ours.
 */
enum { STACK = 64 * KIB, MARGIN = 8 * KIB, SPAN_MAX = MIB, WAITS_MAX = 10 };

/* The first words of what the C library keeps at the thread pointer, on x86-64: the address of
 * itself, twice, and the value that functions compare at their end. */
enum { SELF, SELF_AGAIN = 2, GUARD = 5 };

static uint32_t
    lives; /* atomic relaxed, any thread; the system makes it 0 when the thread is gone */

static char *memory; /* the starting thread: stack, and variables above; kept for the next one */

bool os_thread_lives(void)
{
    return ATOMIC_LOAD_RELAXED(&lives) != 0;
}

void os_thread_begin_process(void)
{
    ATOMIC_STORE_RELAXED(&lives, 0);
}

/* The thread pointer, above the stack; NULL: there is no memory, or variables are too far from each
 * other. */
static uintptr_t *prepare(const void *const variables[2])
{
    uintptr_t here = (uintptr_t)thread_pointer();
    uintptr_t known[] = {(uintptr_t)variables[0], (uintptr_t)variables[1], (uintptr_t)&errno, here};
    uintptr_t lowest = here, highest = here;
    for (unsigned i = 0; i < ARRAY_LENGTH(known); i++) {
        lowest = size_min(lowest, known[i]);
        highest = size_max(highest, known[i]);
    }
    size_t page = os_page_size(), below = round_up(here - lowest + MARGIN, page);
    size_t size = page + STACK + below + round_up(highest - here + MARGIN, page);
    if (size > SPAN_MAX)
        return NULL;
    if (!memory && (memory = os_map(size, page, NULL)) != NULL)
        (void)os_make_inaccessible(memory, page);
    return memory ? (uintptr_t *)(memory + page + STACK + below) : NULL;
}

bool os_thread_start(void (*run)(void), const void *const variables[2])
{
    enum {
        FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                CLONE_SETTLS | CLONE_CHILD_CLEARTID
    };
    /* The last one may not have ended quite. */
    for (unsigned waits = 0; os_thread_lives() && waits < WAITS_MAX; waits++)
        os_sleep_ms(1);
    if (HAKMEM_SANITIZE_ADDRESS || HAKMEM_SANITIZE_THREAD || os_thread_lives() ||
        os_thread_id() != identity_thread(identity_self()))
        return false;
    uintptr_t *pointer = prepare(variables);
    if (!pointer)
        return false;
    pointer[SELF] = pointer[SELF_AGAIN] = (uintptr_t)pointer;
    pointer[GUARD] = ((const uintptr_t *)thread_pointer())[GUARD];
    ATOMIC_STORE_RELAXED(&lives, 1);
    uint64_t blocked = os_block_signals();
    bool started = system_clone(FLAGS, memory + os_page_size() + STACK, run, pointer, &lives) > 0;
    os_restore_signals(blocked);
    if (!started)
        ATOMIC_STORE_RELAXED(&lives, 0);
    return started;
}
