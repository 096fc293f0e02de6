/* The phase of scope_phase.c by jemalloc's names, so that jemalloc can run it as well:
 *
 *     LD_PRELOAD=libjemalloc.so.2 tests/scope/scope_phase_arenas
 */
#include "scope_support.h"

#include <time.h>

#include "../behaviour/jemalloc.h"

enum { PHASES = 5, LONG_LIVED = 20000 };

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void change(unsigned arena)
{
    CHECK(mallctl("thread.arena", NULL, NULL, &arena, sizeof arena) == 0);
}

static unsigned create(void)
{
    unsigned arena = 0;
    size_t length = sizeof arena;
    CHECK(mallctl("arenas.create", &arena, &length, NULL, 0) == 0);
    return arena;
}

static void end(const char *form, unsigned arena)
{
    char name[64];
    snprintf(name, sizeof name, form, arena);
    CHECK(mallctl(name, NULL, NULL, NULL, 0) == 0);
}

/* jemalloc's thread caches would keep blocks of the arena: its manual wants them left out.
 * Long-lived blocks come from the thread's own arena. */
static void fill(unsigned arena, uint64_t *random)
{
    int flags = MALLOCX_ARENA((int)arena) | MALLOCX_TCACHE_NONE;
    size_t lived = 0;
    for (size_t bytes = 0, count = 0; bytes < 200 * MIB; count++) {
        size_t size = 16 + scope_random(random) % 500;
        memset(mallocx(size, flags), 1, size);
        bytes += size;
        if (count % 32 == 0 && lived++ < LONG_LIVED)
            memset(malloc(100), 2, 100);
    }
}

int main(void)
{
    uint64_t random = 1;
    unsigned arena = create();
    change(0);
    for (int phase = 0; phase < PHASES; phase++) {
        size_t before = resident_now();
        double begin_ms = now_ms();
        fill(arena, &random);
        double end_ms = now_ms();
        size_t most = resident_now();
        end(phase < PHASES - 1 ? "arena.%u.reset" : "arena.%u.destroy", arena);
        double back_ms = now_ms() - end_ms;
        size_t after = resident_now();
        printf(
            "filled in %.0f ms, resident %.1f -> %.1f -> %.1f MiB, back in %.2f ms\n",
            end_ms - begin_ms, before / 1048576.0, most / 1048576.0, after / 1048576.0, back_ms);
        CHECK(getenv("LD_PRELOAD") || after <= before + LONG_LIVED * 112 + 2 * MIB);
    }
    return 0;
}
