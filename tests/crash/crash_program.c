/* crash_program KIND [thread | child | both]: dies of one mistake, in its first thread, in another
 * one, in a child of fork, or in two threads at once. What the mistake is about is said on standard
 * output before. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *kind, *where;

static int is(const char *name)
{
    return strcmp(kind, name) == 0;
}

static void announce(const void *address)
{
    printf("%p\n", address);
    fflush(stdout);
}

static int call_without_end(int depth)
{
    volatile char frame[1000];
    frame[0] = (char)depth;
    return call_without_end(depth + 1) + frame[0];
}

static void fill_stack(unsigned seed)
{
    char *stack = __builtin_frame_address(0);
    for (int i = 0; i < 4000; i++) {
        seed = seed * 1103515245 + 12345;
        if (seed >> 30)
            stack[i] = (char)(seed >> 16);
    }
    *(volatile int *)8 = 1;
}

static void own_handler(int signal_number)
{
    static const char message[] = "own handler\n";
    (void)signal_number;
    if (write(1, message, sizeof message - 1) < 0)
        _exit(2);
    _exit(3);
}

static struct sigaction before;

static void chaining_handler(int signal_number, siginfo_t *info, void *context)
{
    static const char message[] = "chaining handler\n";
    if (write(2, message, sizeof message - 1) < 0)
        _exit(2);
    before.sa_sigaction(signal_number, info, context);
}

/* The start of a block that is free by the time of the mistake, whose neighbours are live. */
static char *between_live_blocks(void)
{
    char *blocks[3];
    for (int i = 0; i < 3; i++)
        memset(blocks[i] = malloc(200), 'a', 200);
    return blocks[1];
}

static void misuse_memory(void)
{
    char *block = between_live_blocks();
    if (is("double_free")) {
        announce(block);
        free(block);
        free(block);
    } else if (is("interior_free")) {
        announce(block + 16);
        free(block + 16);
    } else if (is("interior_of_large")) {
        char *large = malloc(100000);
        announce(large + 16);
        free(large + 16);
    } else if (is("past_big")) {
        char *big = malloc((size_t)16 << 20);
        announce(big + ((size_t)16 << 20));
        for (size_t i = (size_t)16 << 20;; i += 4096)
            ((volatile char *)big)[i] = 1;
    } else if (is("free_link")) {
        /* What a stale link leads to: the first word of a free block is no pointer of a program. */
        free(block);
        announce(block);
        **(volatile int *volatile *)block = 1;
    } else if (is("register")) {
        announce(block);
        __asm__ volatile("" ::"r"(block));
        *(volatile char *)(16 + (uintptr_t)(block - block)) = *block;
    }
}

static void make_mistake(void)
{
    if (is("null"))
        *(volatile int *)16 = 1;
    else if (is("jump"))
        ((void (*)(void))(uintptr_t)0)();
    else if (is("abort"))
        abort();
    else if (is("raise"))
        raise(SIGBUS);
    else if (is("overflow"))
        call_without_end(0);
    else if (strncmp(kind, "stack", 5) == 0)
        fill_stack((unsigned)atoi(kind + 5));
    else
        misuse_memory();
}

static void *start_thread(void *unused)
{
    free(malloc(10)); /* hakmem has to know the thread */
    make_mistake();
    return unused;
}

int main(int count, char **arguments)
{
    pthread_t threads[2];
    int status = 0;
    kind = count > 1 ? arguments[1] : "";
    where = count > 2 ? arguments[2] : "";
    if (getenv("OWN_HANDLER")) {
        signal(SIGSEGV, own_handler);
        signal(SIGABRT, own_handler);
    }
    if (getenv("CHAINING_HANDLER")) {
        struct sigaction action = {.sa_sigaction = chaining_handler};
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &action, &before);
    }
    if (strcmp(where, "child") == 0) {
        if (fork() == 0)
            make_mistake();
        wait(&status);
        return WIFSIGNALED(status) ? WTERMSIG(status) : 1;
    }
    for (int i = 0; i < (strcmp(where, "both") == 0 ? 2 : strcmp(where, "thread") == 0); i++)
        pthread_create(&threads[i], NULL, start_thread, NULL);
    if (*where)
        pthread_join(threads[0], NULL);
    make_mistake();
    return 0;
}
