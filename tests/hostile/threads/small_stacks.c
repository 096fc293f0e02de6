/* Threads with the smallest stack that the system allows call every function of the family, and a
 * signal handler on a stack of its own interrupts them. None may overflow its stack.
 *
 * usage: small_stacks
 */
#include "hostile.h"

#include <limits.h>

static volatile sig_atomic_t handled;

static void handler(int signal_number)
{
    (void)signal_number;
    handled = 1;
}

static void call_sizes(void)
{
    static const size_t sizes[] = {1, 100, 1025, 5000, 32769, 200000, 3 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *blocks[100];
        for (size_t k = 0; k < 100; k++) {
            blocks[k] = allocate(sizes[i]);
            blocks[k][0] = 1;
        }
        for (size_t k = 0; k < 100; k++) {
            free(blocks[k]);
        }
        void *block = calloc(1, sizes[i]);
        REQUIRE(block != NULL);
        block = realloc(block, sizes[i] * 2);
        REQUIRE(block != NULL && malloc_usable_size(block) >= sizes[i] * 2);
        free(block);
        block = memalign(4096, sizes[i]);
        REQUIRE(block != NULL);
        free(block);
    }
}

static void *call_all(void *unused)
{
    static char alternate[16 * KIB];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    REQUIRE(sigaltstack(&stack, NULL) == 0);
    REQUIRE(pthread_kill(pthread_self(), SIGUSR1) == 0);
    call_sizes();
    struct mallinfo2 info = mallinfo2();
    REQUIRE(info.arena >= info.uordblks);
    malloc_trim(0);
    call_sizes();
    return unused;
}

int main(void)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        start_thread(&thread, call_all, NULL, (size_t)sysconf(_SC_THREAD_STACK_MIN));
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
    REQUIRE(handled);
    conclude();
    return 0;
}
