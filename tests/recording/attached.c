/* A program that is recorded while it runs: it serves requests until the file "end" appears, and
 * keeps a block now and then. On SIGUSR1 it rests, without a call of malloc, until the next one,
 * and says so; on SIGHUP it says when it has served for a while longer; on SIGUSR2 it forks a child
 * that goes on as it does, and says as much of itself.
 *
 * usage: attached
 */
#include "program.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 200 };

static volatile sig_atomic_t rests, forks, asked;

static void on_signal(int signal)
{
    if (signal == SIGUSR1)
        rests = !rests;
    else if (signal == SIGHUP)
        asked = 1;
    else
        forks = 1;
}

__attribute__((noinline)) static char *serve(size_t size)
{
    char *block = malloc(size);
    REQUIRE(block != NULL);
    memset(block, 1, size);
    return block;
}

__attribute__((noinline)) static void keep(size_t size)
{
    REQUIRE(malloc(size) != NULL);
}

static void serve_some(void)
{
    enum { BLOCKS = 16 };
    char *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = serve(1 + 700 * i);
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    keep(1000);
}

/* Says what it has been asked for, here or in a child. */
static void answer(void)
{
    static int rested, left;
    if (rests != rested)
        puts(rests ? "rests" : "works");
    rested = rests;
    if (left && --left == 0)
        puts("served");
    if (forks && fork() == 0) {
        printf("%d\n", (int)getpid());
        asked = 1;
    }
    forks = 0;
    left = asked ? ROUNDS : left;
    asked = 0;
    fflush(stdout);
}

int main(void)
{
    for (int i = 0; i < 1000; i++)
        keep(30000);
    signal(SIGUSR1, on_signal);
    signal(SIGUSR2, on_signal);
    signal(SIGHUP, on_signal);
    puts("runs");
    fflush(stdout);
    while (access("end", F_OK) != 0) {
        if (!rests)
            serve_some();
        answer();
        usleep(1000);
    }
    while (wait(NULL) > 0)
        continue;
    return 0;
}
