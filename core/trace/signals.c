/* See signals.h.
 *
 * Uses the C library's functions for signals: they neither allocate nor take a lock, and know the
 * kernel's needs.
 */
#include "trace/signals.h"

#include <errno.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "os/os.h"
#include "os/syscall.h"

static const int caught[] = {SIGSEGV, SIGBUS, SIGABRT};

/* Const after signals_catch; the first is atomic relaxed, any thread. */
static signals_handler *our_handler;
static struct sigaction before[ARRAY_LENGTH(caught)];

/* Registers of vector units may take 11 KiB of it. The lowest page cannot be touched. */
static const size_t stack_bytes = 128 * KIB;

void signals_catch(signals_handler *handler)
{
    struct sigaction action = {.sa_sigaction = handler};
    /* A crash within the handler calls the handler again, which then gives up. */
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    ATOMIC_STORE_RELAXED(&our_handler, handler);
    for (size_t i = 0; i < ARRAY_LENGTH(caught); i++)
        if (sigaction(caught[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
            sigaction(caught[i], &action, NULL);
}

bool signals_are_caught(int signal)
{
    struct sigaction now;
    return our_handler && sigaction(signal, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO &&
           now.sa_sigaction == our_handler;
}

static const struct sigaction *find_before(int signal)
{
    size_t i = ARRAY_LENGTH(caught) - 1;
    while (i && caught[i] != signal)
        i--;
    return &before[i];
}

/* When the handler returns, the instruction runs and fails again. A signal that a process sent has
 * to be sent again; it stays blocked until the handler returns. */
static void end_program(int signal, const siginfo_t *info)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    uint64_t blocked = (uint64_t)1 << (signal - 1);
    sigaction(signal, &action, NULL);
    if (info->si_code > 0 && signal != SIGABRT)
        return;
    system_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&blocked, 0, sizeof blocked, 0, 0);
    system_call(SYS_tgkill, os_process_id(), os_thread_id(), signal, 0, 0, 0);
}

void signals_pass_on(int signal, siginfo_t *info, void *context, bool at_once)
{
    const struct sigaction *action = find_before(signal);
    if (at_once || (action->sa_handler == SIG_DFL && !(action->sa_flags & SA_SIGINFO)))
        end_program(signal, info);
    else if (action->sa_flags & SA_SIGINFO)
        action->sa_sigaction(signal, info, context);
    else
        action->sa_handler(signal);
}

void *signals_give_stack(void *kept)
{
    stack_t stack;
    if (!ATOMIC_LOAD_RELAXED(&our_handler) || sigaltstack(NULL, &stack) != 0 ||
        !(stack.ss_flags & SS_DISABLE))
        return kept;
    size_t guard = os_page_size();
    char *memory = kept ? kept : os_reserve(stack_bytes);
    if (!memory || !os_make_writable(memory + guard, stack_bytes - guard))
        return memory;
    stack = (stack_t){.ss_sp = memory + guard, .ss_size = stack_bytes - guard};
    sigaltstack(&stack, NULL);
    return memory;
}

void signals_take_stack(void **place)
{
    char *memory = *place;
    stack_t stack, none = {.ss_flags = SS_DISABLE};
    if (!memory || sigaltstack(NULL, &stack) != 0 || stack.ss_sp != memory + os_page_size())
        return;
    /* A child of fork may be made in between, and give its addresses to something else. */
    *place = NULL;
    KEEP_STORE_ORDER();
    /* A thread that ends inside a handler may still be on it. */
    if (sigaltstack(&none, NULL) == 0)
        os_unmap(memory, stack_bytes);
}
