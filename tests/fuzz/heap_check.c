/* The target `heap`: its entry, and what it adds to the parts of the stress that it uses. */
#include "heap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core_check.h"
#include "system.h"

void check_invariants(void)
{
    uint64_t blocks = 0, bytes = 0;
    struct core_counts counts;

    for (unsigned i = 0; i < SLOTS; i++) {
        if (crew.slots[i].address) {
            blocks++;
            bytes += crew.slots[i].usable;
        }
    }
    core_check(&counts);
    /* In the hardened preset blocks are longer than what may be used of them. */
    if (counts.blocks != blocks || (crew.run.hardened ? counts.asked : counts.bytes) != bytes)
        fuzz_failed(
            "record %llu: %llu blocks with %llu usable bytes are live, the library counts %llu"
            " with %llu, for which %llu were asked",
            (unsigned long long)crew.records, (unsigned long long)blocks, (unsigned long long)bytes,
            (unsigned long long)counts.blocks, (unsigned long long)counts.bytes,
            (unsigned long long)counts.asked);
}

/* ---- What the parts of the stress ask of their program --------------------------------------- */

void report_failure(
    const struct seat *seat, enum operation operation, const struct block *block,
    const char *format, ...)
{
    char what[512];
    va_list list;

    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    fuzz_failed(
        "record %llu, thread %u: %s: %s\n  block: %p, size %u, usable %u, alignment %lu, from %s in"
        " record %u of thread %u",
        (unsigned long long)seat->operation, seat->index, operation_names[operation], what,
        block->address, block->size, block->usable, 1UL << block->align_log2,
        operation_names[block->origin], block->birth_operation, block->birth_seat);
}

void *harness_map(size_t bytes)
{
    void *memory = mmap(
        NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        fuzz_failed("no memory for the harness itself");
    return memory;
}

void harness_unmap(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

/* ---- Entry ----------------------------------------------------------------------------------- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    system_reset();
    crew_prepare();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    crew_act((struct input){.next = bytes, .left = length});
    system_reset();
    return 0;
}
