/* Children that one process makes one after the other, as a server does that forks for each
 * request, get their blocks at other addresses: whoever has seen those of one child knows little of
 * the next one. So it is with fork, and with a bare clone, which runs no handlers.
 *
 * usage: hardened_children
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 64, BLOCKS = 50 };

/* How many addresses have to differ, of the first block of each child, and of the last. The first
 * is one of some 64 that lie free. Of longer blocks few lie free until new slabs are made. */
static const struct {
    size_t size;
    unsigned first, last;
} bounds[] = {{16, 12, 24}, {100, 12, 24}, {1000, 1, 16}, {5000, 1, 24}, {100000, 1, 24}};

struct seen {
    uintptr_t first, last;
};

static struct seen look(size_t size)
{
    struct seen seen = {(uintptr_t)malloc(size), 0};
    for (int i = 1; i < BLOCKS; i++)
        seen.last = (uintptr_t)malloc(size);
    return seen;
}

static pid_t make_child(int way)
{
    return way ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
}

static struct seen ask_child(int way, size_t size)
{
    struct seen seen;
    int ends[2], status;
    if (pipe(ends))
        exit(2);
    pid_t child = make_child(way);
    if (!child) {
        seen = look(size);
        _exit(write(ends[1], &seen, sizeof seen) != sizeof seen);
    }
    if (read(ends[0], &seen, sizeof seen) != sizeof seen || waitpid(child, &status, 0) != child ||
        status)
        exit(3);
    close(ends[0]);
    close(ends[1]);
    return seen;
}

/* How many of the numbers differ. */
static unsigned distinct(const uintptr_t *numbers)
{
    unsigned count = 0;
    for (int i = 0; i < CHILDREN; i++) {
        int j = 0;
        while (j < i && numbers[j] != numbers[i])
            j++;
        count += j == i;
    }
    return count;
}

int main(void)
{
    int failures = 0;
    for (unsigned i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        for (int way = 0; way < 2; way++) {
            uintptr_t first[CHILDREN], last[CHILDREN];
            for (int j = 0; j < 2000; j++)
                free(malloc(bounds[i].size));
            for (int child = 0; child < CHILDREN; child++) {
                struct seen seen = ask_child(way, bounds[i].size);
                first[child] = seen.first;
                last[child] = seen.last;
            }
            unsigned firsts = distinct(first), lasts = distinct(last);
            int bad = firsts < bounds[i].first || lasts < bounds[i].last;
            printf(
                "%s, %zu bytes: %u first, %u last addresses%s\n", way ? "clone" : "fork",
                bounds[i].size, firsts, lasts, bad ? ": too few" : "");
            failures += bad;
        }
    }
    return failures != 0;
}
