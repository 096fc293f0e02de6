/* Stacks of every kind from which malloc may be called.
 *
 * usage: stacks MODE
 */
#include "program.h"

#include <alloca.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { PAGE = 4096, BIG_STACK = 256 * 1024 };

/* ---- Depth ----------------------------------------------------------------------------------- */

__attribute__((noinline)) static int descend(int depth)
{
    volatile char frame[32];
    frame[0] = (char)depth;
    if (depth % 1000 == 0)
        allocate_some();
    return depth ? descend(depth - 1) + frame[0] : 0;
}

static void deep(void)
{
    REQUIRE(descend(50000) != 1);
}

static void *allocate_in_thread(void *unused)
{
    allocate_some();
    return unused;
}

/* As small as the system allows. */
static void small(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    REQUIRE(pthread_attr_setstacksize(&attributes, 16384) == 0);
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, &attributes, allocate_in_thread, NULL) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
    pthread_attr_destroy(&attributes);
}

/* ---- Foreign stacks -------------------------------------------------------------------------- */

static ucontext_t outside, inside;
static size_t taken; /* bytes of the frame below */
static char *volatile sink;

__attribute__((noinline)) static void with_frame(size_t bytes)
{
    volatile char *room = alloca(bytes);
    room[0] = 1;
    for (int i = 0; i < 200; i++) {
        sink = malloc(2000);
        free(sink);
    }
    room[0] = 2;
}

static void coroutine(void)
{
    with_frame(taken);
}

static void run_on(char *stack, size_t bytes)
{
    REQUIRE(getcontext(&inside) == 0);
    inside.uc_stack = (stack_t){.ss_sp = stack, .ss_size = bytes};
    inside.uc_link = &outside;
    makecontext(&inside, coroutine, 0);
    REQUIRE(swapcontext(&outside, &inside) == 0);
}

static char *reserve(size_t bytes)
{
    char *range = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(range != MAP_FAILED);
    return range;
}

/* One after another on stacks that end at different places; the innermost frames lie at the same
 * addresses, while the outermost are where there is no memory any more. */
static void shrinking(void)
{
    char *range = reserve(BIG_STACK);
    for (size_t cut = 0; cut < 8; cut++) {
        size_t end = BIG_STACK - cut * 4 * PAGE;
        REQUIRE(mprotect(range, end, PROT_READ | PROT_WRITE) == 0);
        taken = end - BIG_STACK / 4;
        run_on(range, end);
        REQUIRE(mprotect(range, BIG_STACK, PROT_NONE) == 0);
    }
}

static void coroutines(void)
{
    for (int i = 0; i < 200; i++) {
        char *stack = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(stack != MAP_FAILED);
        taken = (size_t)i * 8;
        run_on(stack, 16384);
        REQUIRE(munmap(stack, 16384) == 0);
    }
}

/* ---- Signal handlers ------------------------------------------------------------------------- */

static volatile sig_atomic_t handled;

static void allocate_in_handler(int number)
{
    (void)number;
    allocate_some();
    handled++;
}

static void handle_on(void *memory, size_t bytes)
{
    stack_t stack = {.ss_sp = memory, .ss_size = bytes};
    struct sigaction action = {.sa_handler = allocate_in_handler, .sa_flags = SA_ONSTACK};
    REQUIRE(sigaltstack(&stack, NULL) == 0);
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
}

static void alternate(void)
{
    for (int i = 0; i < 50; i++) {
        char *stack = malloc(16384);
        handle_on(stack, 16384);
        REQUIRE(raise(SIGUSR1) == 0);
        stack_t none = {.ss_flags = SS_DISABLE};
        REQUIRE(sigaltstack(&none, NULL) == 0);
        free(stack);
    }
}

/* ---- Frames that no table knows -------------------------------------------------------------- */

#ifdef __x86_64__
typedef void *allocator(size_t);

/* A function without unwinding tables, which leaves a value of its own in the frame pointer:
 * push rbp; push rbx; sub rsp, 8; mov rax, rsi; mov rbp, rdx; call rax; add rsp, 8; pop rbx; pop
 * rbp; ret */
static void compiled_at_run_time(void)
{
    static const unsigned char code[] = {0x55, 0x53, 0x48, 0x83, 0xec, 0x08, 0x48,
                                         0x89, 0xf0, 0x48, 0x89, 0xd5, 0xff, 0xd0,
                                         0x48, 0x83, 0xc4, 0x08, 0x5b, 0x5d, 0xc3};
    void *memory =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    memcpy(memory, code, sizeof code);
    void *(*call)(size_t, allocator *, unsigned long);
    memcpy(&call, &memory, sizeof call);
    unsigned long here = (unsigned long)__builtin_frame_address(0);
    const unsigned long pointers[] = {0,        1,        8,           ~0ul,
                                      ~7ul,     0x1000,   1ul << 63,   here,
                                      here + 8, here + 1, here - 4096, here + (64ul << 20)};
    for (int round = 0; round < 500; round++) {
        for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
            sink = call(1000, malloc, pointers[i]);
            REQUIRE(sink != NULL);
            free(sink);
        }
    }
    REQUIRE(munmap(memory, PAGE) == 0);
}

/* As a run-time compiler does, it says where the function is. */
static void name_compiled(const void *start, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    REQUIRE(map && fprintf(map, "%lx %zx made_at_run_time\n", (unsigned long)start, bytes) > 0);
    REQUIRE(fclose(map) == 0);
}

/* A function without unwinding tables, but with a frame pointer, keeps 512 blocks of 32 KiB:
 * push rbp; mov rbp, rsp; call rsi; pop rbp; ret */
__attribute__((noinline)) static void compiled_with_frames(void)
{
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};
    void *memory =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    memcpy(memory, code, sizeof code);
    void *(*call)(size_t, allocator *);
    memcpy(&call, &memory, sizeof call);
    if (getenv("HAKMEM_RECORD_FILE"))
        name_compiled(memory, sizeof code);
    for (int i = 0; i < 512; i++)
        REQUIRE((sink = call(32768, malloc)) != NULL);
}
#else
static void compiled_with_frames(void)
{
}

static void compiled_at_run_time(void)
{
}
#endif

/* ---- Threads --------------------------------------------------------------------------------- */

static void *leave_blocks(void *to)
{
    char **blocks = to;
    for (int i = 0; i < 200; i++)
        REQUIRE((blocks[i] = malloc((size_t)i * 50)) != NULL);
    return NULL;
}

/* Blocks outlive their thread, and others free them. */
static void leaving(void)
{
    static char *blocks[200];
    for (int round = 0; round < 50; round++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, leave_blocks, blocks) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
        for (int i = 0; i < 200; i++)
            free(blocks[i]);
    }
}

static void *allocate_until_cancelled(void *unused)
{
    int type;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    for (;;)
        free(malloc(3000));
    return unused;
}

static void cancelled(void)
{
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, allocate_until_cancelled, NULL) == 0);
        for (volatile int k = 0; k < i * 1000; k++)
            continue;
        REQUIRE(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
        allocate_some();
    }
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {
        {"deep", deep},           {"small", small},
        {"shrinking", shrinking}, {"coroutines", coroutines},
        {"alternate", alternate}, {"compiled_at_run_time", compiled_at_run_time},
        {"leaving", leaving},     {"compiled_with_frames", compiled_with_frames},
        {"cancelled", cancelled}};
    return run_mode(modes, sizeof modes / sizeof *modes, argc > 1 ? argv[1] : "");
}
