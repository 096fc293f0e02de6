/* What a program gives to the pages of its block, from 128 KiB on, ends with the block (behaviour
 * 59): later blocks are in a child of fork what they are in the parent, and may be written. Up to 2
 * MiB that holds for blocks that were asked for at a multiple of a page, and not in the hardened
 * library.
 */
#include "runtime_support.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>

enum { KIB = 1024, MIB = 1024 * KIB, ROUNDS = 2, LATER = 4 };

enum way { WIPE, NO_FORK, WIPE_A_PART, READ_ONLY, GUARD, FILE_INSIDE, LOCKED, WAYS };

static void give(enum way way, char *block, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), half = size / 2 / page * page;
    size_t before = -(uintptr_t)block % page; /* blocks of the hardened library begin anywhere */
    block += before;
    size -= before;
    char *inside = block + half;
    int done = 0;
    switch (way) {
    case WIPE:
        done = madvise(block, size, MADV_WIPEONFORK);
        break;
    case NO_FORK:
        done = madvise(block, size, MADV_DONTFORK);
        break;
    case WIPE_A_PART:
        done = madvise(block, half, MADV_WIPEONFORK);
        break;
    case READ_ONLY:
        done = mprotect(block, size, PROT_READ);
        break;
    case GUARD:
        done = mprotect(block, page, PROT_NONE);
        break;
    case FILE_INSIDE: {
        int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        done = mmap(inside, page, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) != inside;
        close(file);
        break;
    }
    default:
        (void)!mlock(block, size); /* the limit may be low */
    }
    REQUIRE(done == 0);
}

/* True if a child sees what this process wrote into its blocks. */
static bool child_sees(char *const blocks[], size_t size)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        for (int i = 0; i < LATER; i++)
            for (size_t at = 0; at < size; at += KIB)
                if (blocks[i][at] != 9)
                    _exit(1);
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    return status == 0;
}

/* `shrink`: the block is made shorter before it is freed. */
static void check(enum way way, size_t size, bool shrink)
{
    char *blocks[LATER];
    for (int round = 0; round < ROUNDS; round++) {
        /* Side by side: all their pages may be one mapping. */
        for (int i = 0; i < LATER; i++) {
            void *block = NULL;
            if (i % 2 && size > 2 * MIB)
                block = malloc(size);
            else
                REQUIRE(posix_memalign(&block, 4 * KIB, size) == 0);
            REQUIRE(block);
            memset(block, 7, size);
            give(way, block, size);
            blocks[i] = block;
        }
        for (int i = 0; i < LATER; i++) {
            /* The hardened library reads and writes what it makes shorter. */
            bool closed = way == GUARD || way == FILE_INSIDE;
            if (shrink && way != READ_ONLY && !(closed && is_hardened()))
                REQUIRE((blocks[i] = realloc(blocks[i], size / 2)) != NULL);
            free(blocks[i]);
        }
    }
    for (int i = 0; i < LATER; i++) {
        REQUIRE((blocks[i] = malloc(size)) != NULL);
        memset(blocks[i], 9, size);
    }
    if (!child_sees(blocks, size)) {
        fprintf(
            stderr, "way %d, %zu bytes, shrink %d: the child sees something else\n", way, size,
            shrink);
        abort();
    }
    for (int i = 0; i < LATER; i++)
        free(blocks[i]);
    malloc_trim(0);
}

int main(void)
{
    static const size_t sizes[] = {128 * KIB, 200000,  512 * KIB,        MIB, 2 * MIB, 2 * MIB + 1,
                                   4000000,   4 * MIB, 9 * MIB + 4 * KIB};
    watchdog(HANG_SECONDS, "advised");
    for (enum way way = WIPE; way < WAYS; way++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            if (is_hardened() && sizes[i] <= 2 * MIB)
                continue;
            check(way, sizes[i], false);
            if (sizes[i] / 2 >= 128 * KIB)
                check(way, sizes[i], true);
        }
    return 0;
}
