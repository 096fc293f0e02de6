/* Says that it runs, waits for a line, does what the probes tell of, says how often the library
 * counted it, and waits for another line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hakmem/hakmem.h"

static void await_line(void)
{
    char c;
    while (read(0, &c, 1) == 1 && c != '\n')
        continue;
}

int main(void)
{
    enum { BLOCKS = 20 };
    static const size_t big = (size_t)5 << 20;
    void *volatile blocks[BLOCKS];
    struct hakmem_stats before, after;
    char line[100];
    if (write(1, "ready\n", 6) != 6)
        return 1;
    await_line();
    hakmem_get_stats(&before, sizeof before);
    for (int i = 0; i < BLOCKS; i++)
        memset(blocks[i] = malloc(big), i, big);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    hakmem_purge();
    blocks[0] = malloc((size_t)1 << 60);
    hakmem_get_stats(&after, sizeof after);
    int length = snprintf(
        line, sizeof line, "mmap %d munmap %d oom 1\n", (int)(after.mmap_calls - before.mmap_calls),
        (int)(after.munmap_calls - before.munmap_calls));
    if (write(1, line, (size_t)length) != length)
        return 1;
    await_line();
    return 0;
}
