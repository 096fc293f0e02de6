/* The system will not close the end that a large block of the hardened preset gives up, and later
 * it will again: the block grows and shrinks on, and its memory does not wait when it is freed.
 */
#include <hakmem/hakmem.h>

#include "hardened.h"
#include "os/fault.h"
#include "runtime_support.h"

enum { LONG = 100000, MIDDLE = 80000, SHORT = 50000, SHORTEST = 40000 };

static bool refuse(enum os_call call)
{
    return call < OS_FUTEX;
}

static void resize_here(unsigned char *block, size_t before, size_t size)
{
    size_t kept = before < size ? before : size;
    REQUIRE(realloc(block, size) == block);
    for (size_t i = 0; i < size; i++)
        REQUIRE(block[i] == (i < kept ? 0x55 : 0));
    memset(block, 0x55, size);
}

static void shrink_while_refused(unsigned char *block, size_t before, size_t size)
{
    fault_hook = refuse;
    resize_here(block, before, size);
    fault_hook = NULL;
}

static void grow_and_shrink(void)
{
    unsigned char *block = malloc(LONG);
    REQUIRE(block != NULL);
    memset(block, 0x55, LONG);
    shrink_while_refused(block, LONG, SHORT);
    resize_here(block, SHORT, MIDDLE);
    resize_here(block, MIDDLE, SHORTEST);
    resize_here(block, SHORTEST, MIDDLE);
    shrink_while_refused(block, MIDDLE, SHORTEST);
    free(block);
}

/* Of so much memory little is left, as soon as the system takes it. */
static void free_while_refused(size_t size)
{
    enum { BYTES = 48 << 20, BLOCKS_MAX = 480 };
    static unsigned char *blocks[BLOCKS_MAX];
    size_t count = BYTES / size;
    hakmem_purge();
    long before = resident_kib();
    REQUIRE(count <= BLOCKS_MAX);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(blocks[i] = malloc(size));
        memset(blocks[i], 0x55, size);
    }
    fault_hook = refuse;
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    fault_hook = NULL;
    hakmem_purge();
    REQUIRE(resident_kib() - before < 4096);
}

int main(void)
{
    watchdog(HANG_SECONDS, "blocks that cannot be closed");
    REQUIRE(HARDENED);
    grow_and_shrink();
    free_while_refused(150000);
    free_while_refused(3 << 20);
    return 0;
}
