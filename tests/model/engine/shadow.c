/* The shadow of the memory: who accessed what, and what was there before the execution.
 *
 * For each 8 bytes that an execution touches there is a cell: the last accesses of each thread, and
 * the old value, which is put back at the end. Two accesses race if they overlap, one of them
 * writes, not both are atomic, and neither happens before the other.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/engine.h"
#include "engine/report.h"

enum { CELLS_MAX = 1 << 17, SLOTS = CELLS_MAX * 2, ACCESSES_MAX = 40, RANGES_MAX = 256 };

struct access {
    uint8_t mask; /* of the 8 bytes */
    uint8_t thread;
    bool write, atomic;
    uint32_t clock;
    const void *code;
};

/* Of a cell mostly the first cache line is looked at. */
struct cell {
    uint64_t *word;
    uint64_t before;
    uint8_t count;
    bool unmapped, located; /* whether it may have locations */
    _Alignas(8) struct access access[ACCESSES_MAX];
    struct location *location[8]; /* by first byte */
} __attribute__((aligned(64)));

static struct cell *cells;
static uint32_t cell_count;
static struct {
    uint32_t execution, cell;
} slots[SLOTS];
static uint32_t execution;

static struct range {
    uintptr_t start, end;
    enum range_event event;
    struct access access;
} ranges[RANGES_MAX];
static unsigned range_count;

static struct clock clocks[CLOCKS];

void shadow_start(void)
{
    if (!cells)
        cells = mmap(
            NULL, CELLS_MAX * sizeof *cells, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    execution++;
    cell_count = range_count = 0;
    memset(clocks, 0, sizeof clocks);
    for (int i = 0; i < CLOCKS; i++)
        clocks[i].at[i] = 1;
}

void shadow_end(void)
{
    for (uint32_t i = 0; i < cell_count; i++)
        if (*cells[i].word != cells[i].before) /* or it may be constant */
            *cells[i].word = cells[i].before;
    atomic_forget_all();
}

uint32_t shadow_execution(void)
{
    return execution;
}

struct clock *shadow_clock(void)
{
    return &clocks[current];
}

void shadow_tick(void)
{
    clocks[current].at[current]++;
}

void shadow_join(int thread)
{
    clock_join(&clocks[current], &clocks[thread]);
}

void shadow_settle(void)
{
    struct clock all = clocks[0];
    for (int i = 1; i < CLOCKS; i++)
        clock_join(&all, &clocks[i]);
    for (int i = 0; i < CLOCKS; i++) {
        clocks[i] = all;
        clocks[i].at[i]++;
    }
}

/* ---- Races ----------------------------------------------------------------------------------- */

static void check(struct cell *cell, const struct access *new)
{
    for (unsigned i = 0; i < cell->count; i++) {
        struct access *old = &cell->access[i];
        if (old->thread == new->thread || !(old->mask & new->mask))
            continue;
        if ((old->atomic && new->atomic) || (!old->write && !new->write))
            continue;
        if (old->clock <= clocks[new->thread].at[old->thread])
            continue;
        report_race(cell->word, old->code, old->write, old->thread, new->code, new->write);
    }
}

static void record(struct cell *cell, const struct access *new)
{
    for (unsigned i = 0; i < cell->count; i++) {
        struct access *old = &cell->access[i];
        bool same = old->thread == new->thread && old->mask == new->mask &&
                    old->write == new->write && old->atomic == new->atomic;
        if (same || !old->mask) {
            *old = *new;
            return;
        }
    }
    if (cell->count == ACCESSES_MAX)
        model_fail("ACCESSES_MAX is too small");
    cell->access[cell->count++] = *new;
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static void apply_range(struct cell *cell, const struct range *range, bool checks)
{
    if ((uintptr_t)cell->word < range->start || (uintptr_t)cell->word >= range->end)
        return;
    if (checks)
        check(cell, &range->access);
    if (range->event == RANGE_MAPPED)
        cell->count = 0;
    record(cell, &range->access);
    cell->unmapped = range->event == RANGE_UNMAPPED;
    if (!checks || range->event == RANGE_UNMAPPED)
        return;
    for (int i = 0; cell->located && i < 8; i++)
        if (cell->location[i])
            atomic_written_plainly(cell->location[i]);
    *cell->word = 0;
}

static struct cell *cell_of(uintptr_t granule)
{
    /* Neighbours lie side by side, in one cache line. */
    size_t slot = (granule >> 3 & 63) | ((granule >> 9) * 0x9e3779b97f4a7c15u >> 52) << 6;
    for (; slots[slot % SLOTS].execution == execution; slot++) {
        struct cell *cell = &cells[slots[slot % SLOTS].cell];
        if (cell->word == (uint64_t *)granule)
            return cell;
    }
    if (cell_count == CELLS_MAX)
        model_fail("CELLS_MAX is too small");
    slots[slot % SLOTS].execution = execution;
    slots[slot % SLOTS].cell = cell_count;
    struct cell *cell = &cells[cell_count++];
    cell->word = (uint64_t *)granule;
    cell->before = *cell->word;
    cell->count = 0;
    cell->unmapped = cell->located = false;
    for (unsigned i = 0; i < range_count; i++)
        apply_range(cell, &ranges[i], false);
    return cell;
}

void shadow_access(const void *address, size_t size, bool write, bool atomic, const void *code)
{
    if (!exploring || fiber_own_memory(address))
        return;
    uintptr_t end = (uintptr_t)address + size;
    if (write && !atomic)
        undo_record((void *)address, size);
    for (uintptr_t at = (uintptr_t)address; at < end; at = (at | 7) + 1) {
        struct cell *cell = cell_of(at & ~(uintptr_t)7);
        unsigned first = at & 7, last = end - (at & ~(uintptr_t)7) < 8 ? end & 7 : 8;
        struct access new = {
            (uint8_t)((1 << last) - (1 << first)),
            (uint8_t)current,
            write,
            atomic,
            clocks[current].at[current],
            code};
        if (cell->unmapped)
            model_fail("an access to memory that is not mapped, at %s", report_place(code));
        check(cell, &new);
        record(cell, &new);
        for (unsigned i = first; write && !atomic && cell->located && i < last; i++)
            if (cell->location[i])
                atomic_written_plainly(cell->location[i]);
    }
}

void shadow_rewritten(const void *address, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uintptr_t byte = (uintptr_t)address + i;
        struct cell *cell = cell_of(byte & ~(uintptr_t)7);
        if (cell->located && cell->location[byte & 7])
            atomic_written_plainly(cell->location[byte & 7]);
    }
}

void shadow_range(void *address, size_t size, enum range_event event, const void *code)
{
    if (!exploring)
        return;
    if (range_count == RANGES_MAX)
        model_fail("RANGES_MAX is too small");
    struct range *range = &ranges[range_count++];
    *range = (struct range){
        (uintptr_t)address,
        (uintptr_t)address + size,
        event,
        {0xff, (uint8_t)current, true, false, clocks[current].at[current], code}};
    for (uint32_t i = 0; i < cell_count; i++)
        apply_range(&cells[i], range, true);
}

struct location **shadow_location(const void *address)
{
    struct cell *cell = cell_of((uintptr_t)address & ~(uintptr_t)7);
    if (!cell->located)
        memset(cell->location, 0, sizeof cell->location);
    cell->located = true;
    return &cell->location[(uintptr_t)address & 7];
}
