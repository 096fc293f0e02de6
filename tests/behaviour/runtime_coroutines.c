/* Samples on other stacks than the thread's own.
 *
 * A coroutine that never returns may have anything where its return address would be, and no memory
 * behind that. And what tells where a thread's stack lies reads a file, in the first thread, of
 * which stdio keeps a list under a lock: a coroutine there that reads a stream holds the stream's,
 * and fflush(NULL) in another thread the list's, waiting for the stream.
 */
#include "runtime_support.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <hakmem/hakmem.h>

enum { STACK_BYTES = 256 << 10, PAGE_BYTES_MAX = 64 << 10 };

/* The memory of a loaded file is not all readable. */
static _Alignas(PAGE_BYTES_MAX) char own_stack[STACK_BYTES + PAGE_BYTES_MAX];

static ucontext_t caller, coroutine;
static uintptr_t wrong_address;

static void allocate(void)
{
    for (unsigned i = 0; i < 200; i++)
        free(malloc(50000));
}

/* Returns when the function calls leave(). */
static void run_on(char *stack, void (*function)(void))
{
    REQUIRE(mprotect(stack + STACK_BYTES, PAGE_BYTES_MAX, PROT_NONE) == 0);
    REQUIRE(getcontext(&coroutine) == 0);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = STACK_BYTES;
    coroutine.uc_link = NULL;
    makecontext(&coroutine, function, 0);
    REQUIRE(swapcontext(&caller, &coroutine) == 0);
}

static void run(void (*function)(void))
{
    size_t size = sizeof own_stack;
    char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(stack != MAP_FAILED);
    run_on(stack, function);
    REQUIRE(munmap(stack, size) == 0);
}

static void leave(void)
{
    setcontext(&caller);
    REQUIRE(!"gone");
}

/* Of a function with a frame pointer the return address lies right above where that was saved. */
__attribute__((noinline)) static void never_returns(void)
{
    ((volatile uintptr_t *)__builtin_frame_address(0))[1] = wrong_address;
    allocate();
    leave();
}

/* Here its stack goes on above the wrong address. */
__attribute__((noinline)) static void never_returns_from_below(void)
{
    volatile char room[8192] = {0};
    never_returns();
    REQUIRE(room[0]);
}

static volatile int reads;

static void *flush_all(void *unused)
{
    (void)unused;
    while (!reads)
        usleep(100);
    fflush(NULL);
    return NULL;
}

static ssize_t read_slowly(void *cookie, char *buffer, size_t size)
{
    (void)cookie;
    reads = 1;
    usleep(100000); /* until the other thread has the list, and waits for the stream */
    allocate();
    memset(buffer, '\n', size);
    return (ssize_t)size;
}

static void read_stream(void)
{
    cookie_io_functions_t functions = {.read = read_slowly};
    char line[16];
    FILE *stream = fopencookie(NULL, "r", functions);
    REQUIRE(stream && fgets(line, sizeof line, stream));
    fclose(stream);
    leave();
}

int main(void)
{
    pthread_t thread;
    long mean_kib;
    watchdog(HANG_SECONDS, "hangs in stdio\n");
    REQUIRE(hakmem_option_get("sample_kib", &mean_kib) == 0 && mean_kib > 0);
    const uintptr_t wrong[] = {
        0xa5a5a5a5a5a5a5a5u, 0x10, (uintptr_t)&caller, (uintptr_t)main, (uintptr_t)leave};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        wrong_address = wrong[i];
        run(never_returns);
        run(never_returns_from_below);
        run_on(own_stack, never_returns);
    }
    REQUIRE(pthread_create(&thread, NULL, flush_all, NULL) == 0);
    run(read_stream);
    REQUIRE(pthread_join(thread, NULL) == 0);
    printf("coroutines have been sampled\n");
    return 0;
}
