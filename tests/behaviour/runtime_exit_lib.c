/* A library whose destructor, which runs after the program's and maybe after the allocator's own,
 * still uses the heap (behaviour 33).
 */
#include "runtime_support.h"

/* Where destructors report that they ran; -1 for nowhere. */
int exit_report = -1;

void exit_report_step(char step);
void exit_work(void);

void exit_report_step(char step)
{
    if (exit_report >= 0) {
        REQUIRE(write(exit_report, &step, 1) == 1);
    }
}

/* What every late place does: allocates in all tiers, keeps some for a later place to free. */
void exit_work(void)
{
    static void *kept[64];
    static unsigned tag;
    for (unsigned i = 0; i < 64; i++) {
        if (kept[i] != NULL) {
            REQUIRE(pattern_holds(kept[i], 30 + i * 50, tag));
            free(kept[i]);
        }
    }
    tag++;
    for (unsigned i = 0; i < 64; i++) {
        kept[i] = malloc(30 + i * 50);
        REQUIRE(kept[i] != NULL);
        pattern_fill(kept[i], 30 + i * 50, tag);
    }
    for (size_t size = 16; size < 8u << 20; size *= 4) {
        void *block = calloc(1, size);
        REQUIRE(block != NULL && pattern_holds(block, size, 0));
        block = realloc(block, size * 2);
        REQUIRE(block != NULL);
        free(block);
    }
    for (unsigned round = 0; round < 3; round++) {
        void *run[300];
        for (unsigned i = 0; i < 300; i++) {
            run[i] = malloc(200);
            REQUIRE(run[i] != NULL);
        }
        for (unsigned i = 0; i < 300; i++) {
            free(run[i]);
        }
    }
}

__attribute__((destructor(101))) static void library_destructor(void)
{
    exit_work();
    exit_report_step('l');
}
