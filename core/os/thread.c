/* See thread.h. */
#include "os/thread.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "os/os.h"
#include "os/syscall.h"

/* Bytes. MARGIN: of thread-local variables around one whose address is known, and of what the C
 * library keeps at the thread pointer. SPAN_MAX: a program has variables of its own between ours.
 * STATUS: of the file that tells of filters. */
enum { STACK = 64 * KIB, MARGIN = 8 * KIB, SPAN_MAX = 256 * KIB, STATUS = 8 * KIB, WAITS_MAX = 10 };

/* That of the thread; NULL: there was none yet. Atomic relaxed; written once, by a starting thread.
 */
static void *pointer;

static uint32_t lives; /* its id; atomic relaxed, any thread; 0 when it is gone, by the system */
static int process; /* const after initialisation and after fork: that which may have the thread */

/* Const after initialisation. The line of the status file that counts the filters which the program
 * was started under, and the beginning of the next line; empty: not known. */
static char filters[32];

bool os_thread_is_bare(void)
{
    return thread_pointer() == ATOMIC_LOAD_RELAXED(&pointer);
}

void os_thread_begin_process(void)
{
    ATOMIC_STORE_RELAXED(&lives, 0);
    process = os_process_id();
}

/* Of the calling thread. A file, which fewer filters kill for than for other questions. */
static void read_status(char buffer[static STATUS])
{
    buffer[os_read_file("/proc/thread-self/status", buffer, STATUS - 1)] = 0;
}

static bool is_alone(const char *status)
{
    return strstr(status, "\nThreads:\t1\n") != NULL;
}

void os_thread_begin_program(void)
{
    char status[STATUS + sizeof filters];
    read_status(status);
    const char *line = strstr(status, "\nSeccomp_filters:");
    if (line && is_alone(status))
        memcpy(filters, line, sizeof filters - 1);
}

/* A filter of system calls may end the calling thread for starting another one: it is not one of
 * those of the start, or there is no thread that was made since. */
static bool is_filtered(char buffer[static STATUS])
{
    read_status(buffer);
    if (strstr(buffer, "\nSeccomp:\t0\n"))
        return false;
    return !filters[0] || !strstr(buffer, filters) || is_alone(buffer);
}

/* Makes variables of the thread's own, all zero, at the distances from the thread pointer that they
 * have in the caller. Returns the end of the stack, which is below; NULL: there is no memory, or
 * variables are too far from each other. */
static char *prepare(const void *const variables[2])
{
    uintptr_t here = (uintptr_t)thread_pointer();
    uintptr_t known[] = {(uintptr_t)variables[0], (uintptr_t)variables[1], (uintptr_t)&errno};
    uintptr_t lowest = here, highest = here;
    for (unsigned i = 0; i < ARRAY_LENGTH(known); i++) {
        lowest = size_min(lowest, known[i]);
        highest = size_max(highest, known[i]);
    }
    size_t page = os_page_size(), below = round_up(here - lowest + MARGIN, page);
    size_t bytes = below + round_up(highest - here + MARGIN, page), stack = page + STACK;
    if (bytes > SPAN_MAX)
        return NULL;
    if (!pointer) {
        char *memory = os_map(stack + bytes, page, NULL);
        if (!memory)
            return NULL;
        (void)os_make_inaccessible(memory, page);
        ATOMIC_STORE_RELAXED(&pointer, memory + stack + below);
    }
    return memset((char *)pointer - below, 0, bytes);
}

bool os_thread_start(void (*run)(void), const void *const variables[2])
{
    /* The C library's, for filters that let pass nothing else. */
    enum {
        FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID
    };
    /* The last one may not have ended quite. */
    for (unsigned waits = 0; ATOMIC_LOAD_RELAXED(&lives) && waits < WAITS_MAX; waits++)
        os_sleep_ms(1);
    if (HAKMEM_SANITIZE_ADDRESS || HAKMEM_SANITIZE_THREAD || ATOMIC_LOAD_RELAXED(&lives) ||
        os_process_id() != process)
        return false;
    char *stack = prepare(variables);
    if (!stack || is_filtered(stack - STATUS))
        return false;
    thread_pointer_prepare(pointer);
    uint64_t blocked = os_block_signals();
    bool started = system_clone(FLAGS, stack, run, pointer, &lives) > 0;
    os_restore_signals(blocked);
    return started;
}
