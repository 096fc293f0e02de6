/* The threads of a scenario, as fibers. Thread-local variables of the checked code are ordinary
 * ones in a section of their own (CMakeLists.txt), which is swapped with the fiber. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "engine/engine.h"

enum { STACK_BYTES = 256 * 1024, LOCALS_MAX = 256 };

/* The bounds of that section, by the linker; no such variables, no section. */
extern char __start_thread_local_variables[] __attribute__((weak));
extern char __stop_thread_local_variables[] __attribute__((weak));

static struct fiber {
    jmp_buf context;
    ucontext_t start;
    char *stack;
    void (*body)(void);
    char locals[LOCALS_MAX];
} fibers[CLOCKS];

static char fresh_locals[LOCALS_MAX];

int current = MAIN;

static size_t locals_size(void)
{
    return (size_t)(__stop_thread_local_variables - __start_thread_local_variables);
}

void fiber_init(void)
{
    if (locals_size() > LOCALS_MAX)
        model_fail("LOCALS_MAX is too small: %zu", locals_size());
    memcpy(fresh_locals, __start_thread_local_variables, locals_size());
    char *stacks = mmap(
        NULL, THREADS_MAX * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
        0);
    if (stacks == MAP_FAILED)
        model_fail("no memory for stacks");
    for (int i = 0; i < THREADS_MAX; i++)
        fibers[i].stack = stacks + i * STACK_BYTES;
}

static void swap_locals(int next)
{
    memcpy(fibers[current].locals, __start_thread_local_variables, locals_size());
    memcpy(__start_thread_local_variables, fibers[next].locals, locals_size());
    current = next;
}

static void run(void)
{
    fibers[current].body();
    abort();
}

void fiber_start(int thread, void (*body)(void))
{
    struct fiber *fiber = &fibers[thread];
    memcpy(fiber->locals, fresh_locals, locals_size());
    fiber->body = body;
    getcontext(&fiber->start);
    fiber->start.uc_stack.ss_sp = fiber->stack;
    fiber->start.uc_stack.ss_size = STACK_BYTES;
    makecontext(&fiber->start, run, 0);
    if (_setjmp(fibers[current].context) == 0) {
        swap_locals(thread);
        setcontext(&fiber->start);
    }
}

void fiber_switch(int thread)
{
    if (thread == current || _setjmp(fibers[current].context) != 0)
        return;
    swap_locals(thread);
    _longjmp(fibers[thread].context, 1);
}

bool fiber_own_memory(const void *address)
{
    const char *byte = address, *here = __builtin_frame_address(0);
    if (byte >= __start_thread_local_variables && byte < __stop_thread_local_variables)
        return true;
    if (byte >= here - STACK_BYTES && byte < here + STACK_BYTES && current == MAIN)
        return true;
    const char *stacks = fibers[0].stack;
    if (byte < stacks || byte >= stacks + THREADS_MAX * STACK_BYTES)
        return false;
    if ((byte - stacks) / STACK_BYTES != current)
        model_fail("an access to the stack of another thread");
    return true;
}
