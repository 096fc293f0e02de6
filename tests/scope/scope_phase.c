/* A phase of a program that fills 200 MiB with small blocks, beside long-lived ones that it makes
 * meanwhile, and ends: what it held goes back at once.
 *
 * Prints the figures. The time counts in the quickest of five phases, for machines that do other
 * things as well, and only where the system has huge pages to give: a thousand pages of 4 KiB cost
 * it more than a huge one. */
#include "scope_support.h"

#include <malloc.h>
#include <stdbool.h>
#include <time.h>

enum { PHASES = 5, LONG_LIVED = 20000 };

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void *long_lived[PHASES * LONG_LIVED];
static size_t lived;

/* Keeps long-lived blocks of 100 bytes between those of the phase; returns their number. */
static size_t fill(struct hakmem_scope *scope, uint64_t *random, size_t wanted)
{
    size_t count = 0, end = lived + LONG_LIVED;
    CHECK(hakmem_scope_enter(scope) == 0);
    for (size_t bytes = 0; bytes < wanted; count++) {
        size_t size = 16 + scope_random(random) % 500;
        memset(malloc(size), 1, size);
        bytes += size;
        if (count % 32 == 0 && lived < end) {
            CHECK(hakmem_scope_enter(NULL) == 0);
            memset(long_lived[lived++] = malloc(100), 2, 100);
            hakmem_scope_leave(NULL);
        }
    }
    hakmem_scope_leave(scope);
    return count;
}

int main(int argc, char **argv)
{
    bool by_huge_pages = argc > 1 && !strcmp(argv[1], "huge");
    uint64_t random = 1;
    double least_ms = 1e9;
    struct hakmem_scope *scope = make_scope("phase", 0);
    for (int phase = 0; phase < PHASES; phase++) {
        size_t before = resident_now();
        double begin_ms = now_ms();
        size_t count = fill(scope, &random, 200 * MIB), most = resident_now();
        struct hakmem_scope_figures usage = usage_of(scope);
        CHECK(usage.live_blocks == count && usage.resident_bytes >= usage.live_bytes);
        double reset_ms = now_ms();
        if (phase < PHASES - 1)
            hakmem_scope_reset(scope);
        else
            hakmem_scope_destroy(scope);
        double end_ms = now_ms();
        size_t after = resident_now();
        /* The blocks that stay take memory, too. */
        size_t kept = LONG_LIVED * malloc_usable_size(long_lived[0]);
        printf(
            "%zu blocks in %.0f ms, resident %.1f -> %.1f -> %.1f MiB, back in %.2f ms\n", count,
            reset_ms - begin_ms, before / 1048576.0, most / 1048576.0, after / 1048576.0,
            end_ms - reset_ms);
        CHECK(after <= before + kept + 2 * MIB);
        least_ms = end_ms - reset_ms < least_ms ? end_ms - reset_ms : least_ms;
    }
    CHECK(!by_huge_pages || least_ms <= 10);
    for (size_t i = 0; i < lived; i++)
        CHECK(*(char *)long_lived[i] == 2);
    return 0;
}
