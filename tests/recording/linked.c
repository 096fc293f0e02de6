/* Holds blocks of every size by each call of the family, in a function of its own each. The library
 * is linked into it.
 *
 * usage: linked
 */
#include "program.h"

#include <malloc.h>

static void *volatile kept;

#define HOLD(name, call)                                                                           \
    __attribute__((noinline)) static void hold_by_##name(size_t size)                              \
    {                                                                                              \
        void *block = NULL;                                                                        \
        call;                                                                                      \
        REQUIRE(block != NULL);                                                                    \
        kept = block;                                                                              \
    }

HOLD(malloc, block = malloc(size))
HOLD(calloc, block = calloc(2, size / 2))
HOLD(realloc, block = realloc(malloc(10), size))
HOLD(grown, block = realloc(malloc(size / 2), size))
HOLD(reallocarray, block = reallocarray(malloc(10), 2, size / 2))
HOLD(posix_memalign, REQUIRE(posix_memalign(&block, 64, size) == 0))
HOLD(posix_memalign_page, REQUIRE(posix_memalign(&block, 4096, size) == 0))
HOLD(aligned_alloc, block = aligned_alloc(64, size))
HOLD(memalign, block = memalign(256, size))
HOLD(valloc, block = valloc(size))
HOLD(pvalloc, block = pvalloc(size))

static void (*const calls[])(size_t) = {
    hold_by_malloc,        hold_by_calloc,
    hold_by_realloc,       hold_by_grown,
    hold_by_reallocarray,  hold_by_posix_memalign,
    hold_by_aligned_alloc, hold_by_posix_memalign_page,
    hold_by_memalign,      hold_by_valloc,
    hold_by_pvalloc,
};

int main(void)
{
    static const size_t sizes[] = {96, 1200, 20000, 100000, 3000000};
    enum { BYTES = 3000000 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t call = 0; call < sizeof calls / sizeof *calls; call++)
            for (size_t held = 0; held < BYTES / 10; held += sizes[i])
                calls[call](sizes[i]);
    return 0;
}
