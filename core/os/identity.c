/* See identity.h. */
#include "os/identity.h"

#include "os/os.h"
#include "os/syscall.h"

/* The number while one thread repairs the new process, and the others wait. */
#define IN_REPAIR UINT32_MAX

static struct process_number unwiped = {.number = 1};
static uint32_t newest = 1; /* number; written by the repairing thread */
static void (*repair_process)(uint32_t before, uint32_t now);

struct process_number *identity_process = &unwiped;
__thread uint64_t own_identity;

static struct process_number *process_here(void)
{
    return ATOMIC_LOAD_ACQUIRE(&identity_process);
}

void identity_start(void (*repair)(uint32_t before, uint32_t now))
{
    repair_process = repair;
    if (process_here() != &unwiped)
        return;
    struct process_number *wiped = os_map_wiped(sizeof *wiped);
    if (!wiped)
        return;
    wiped->number = unwiped.number;
    ATOMIC_STORE_RELEASE(&identity_process, wiped);
}

/* Gives the new process a number, unless another thread does. Signals are blocked meanwhile: a
 * handler that allocates would wait for the call that it interrupted. */
static void begin_child(struct process_number *process, uint32_t id)
{
    uint32_t none = 0;
    uint64_t signals = os_block_signals();
    if (__atomic_compare_exchange_n(
            &process->number, &none, IN_REPAIR, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        /* An id from before the parent was a process of its own may be another thread's there. */
        uint32_t before = own_identity >> 32 == newest ? identity_thread(own_identity) : 0;
        if (repair_process)
            repair_process(before, id);
        ATOMIC_STORE_RELEASE(&process->number, ++newest);
    }
    os_restore_signals(signals);
}

uint64_t identity_renew(void)
{
    struct process_number *process = process_here();
    uint32_t id = os_thread_id(), number;
    while ((number = ATOMIC_LOAD_ACQUIRE(&process->number)) == 0 || number == IN_REPAIR) {
        if (number == IN_REPAIR)
            cpu_relax();
        else
            begin_child(process, id);
    }
    return own_identity = (uint64_t)number << 32 | id;
}

void identity_before_fork(void)
{
    ATOMIC_STORE_RELAXED(&process_here()->forked, 1);
}

void identity_in_child(void)
{
    struct process_number *process = process_here();
    if (!ATOMIC_LOAD_RELAXED(&process->forked))
        return;
    ATOMIC_STORE_RELAXED(&process->forked, 0);
    ATOMIC_STORE_RELAXED(&process->number, 0);
}
