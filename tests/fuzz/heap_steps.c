/* The target `heap`: what the records of an input mean. */
#include "heap.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_check.h"
#include "heap_others.h"
#include "model.h"
#include "system.h"

static struct block *slot_at(unsigned index)
{
    return &crew.slots[index % SLOTS];
}

/* ---- Steps on a slot ------------------------------------------------------------------------- */

static void step_free(struct actor *actor, struct block *slot, bool sized)
{
    if (slot->address) {
        perform_release(&actor->seat, slot, sized);
        return;
    }
    actor->seat.entries->free(NULL);
    model_check_errno(&actor->seat, OP_FREE, slot);
}

/* Says whether the block may be had: takes it from the budget of live bytes, and from that of all
 * bytes of the input. */
static bool afford(struct actor *actor, size_t size)
{
    if (size > crew.bytes_left || !budget_take(&actor->seat, size))
        return false;
    crew.bytes_left -= size;
    return true;
}

static void step_allocate(
    struct actor *actor, struct block *slot, enum operation operation, const struct record *record)
{
    struct request request = {
        .size = decode_size(record),
        .split_log2 = record->fine & 7,
        .align_log2 = decode_align_log2(record),
        .odd_align = (record->fine & 0x10) != 0,
    };

    if (slot->address)
        perform_release(&actor->seat, slot, false);
    if (afford(actor, request.size))
        perform_allocate(&actor->seat, slot, operation, &request);
}

static void step_resize(
    struct actor *actor, struct block *slot, enum operation operation, const struct record *record)
{
    struct request request = {.size = decode_size(record), .split_log2 = record->fine & 7};

    if (!slot->address)
        step_allocate(actor, slot, operation, record);
    else if (afford(actor, request.size))
        perform_resize(&actor->seat, slot, operation, &request);
}

/* A size a little above or below that of the block. */
static size_t nudged(const struct block *slot, const struct record *record)
{
    size_t change = (slot->size >> (1 + record->fine % 8)) + record->fine % 3;

    return record->size & 1 ? slot->size + change : slot->size - change % (slot->size + 1);
}

/* Grows or shrinks by a little: what realloc may do in place. */
static void step_nudge(struct actor *actor, struct block *slot, const struct record *record)
{
    struct request request;

    if (!slot->address)
        return;
    request = (struct request){.size = nudged(slot, record)};
    if (afford(actor, request.size))
        perform_resize(&actor->seat, slot, OP_REALLOC, &request);
}

/* mallocx, rallocx of a block that is there, and xallocx, by a little or to any size. */
static void step_flags(
    struct actor *actor, struct block *slot, enum operation operation, const struct record *record)
{
    static const size_t extra[] = {0, 1, 4096, 1 << 17};
    struct request request = {
        .size = decode_wide_size(record),
        .align_log2 = record->fine & 0x10 ? decode_align_log2(record) : 0,
        .zero = (record->fine & 0x20) != 0,
    };

    if (slot->address && operation == OP_MALLOCX)
        perform_release(&actor->seat, slot, (record->fine & 1) != 0);
    if (!slot->address) {
        if (afford(actor, request.size))
            perform_allocate(&actor->seat, slot, OP_MALLOCX, &request);
        return;
    }
    if (operation == OP_RALLOCX) {
        if (afford(actor, request.size))
            perform_resize(&actor->seat, slot, OP_RALLOCX, &request);
        return;
    }
    if (record->fine & 0x40)
        request.size = nudged(slot, record);
    request.size += request.size == 0;
    request.extra = record->fine == 0xFF ? SIZE_MAX - request.size : extra[record->fine & 3];
    if (afford(actor, request.size))
        perform_resize_in_place(&actor->seat, slot, &request);
}

static void step_verify(struct actor *actor, struct block *slot)
{
    if (!slot->address)
        return;
    perform_ask(&actor->seat, slot);
    model_retire(&actor->seat, OP_USABLE_SIZE, slot);
    model_readmit(&actor->seat, OP_USABLE_SIZE, slot);
}

/* A program's own data may look like the mark that freed blocks carry: such a block is freed as any
 * other. */
static void step_free_forged(struct actor *actor, struct block *slot)
{
    struct seat *seat = &actor->seat;

    if (!slot->address || slot->usable < 16)
        return;
    model_retire(seat, OP_FREE, slot);
    *(void **)slot->address = core_mark();
    seat->entries->free(slot->address);
    model_check_errno(seat, OP_FREE, slot);
    budget_return(seat, slot->size);
    slot->address = NULL;
}

/* ---- Steps of the whole ---------------------------------------------------------------------- */

static void step_option(const struct record *record)
{
    static const struct {
        const char *name;
        long min, max;
        bool settable;
    } options[] = {
#define OPTION(name, unit, words, settable, min, max, ...) {#name, min, max, settable},
#include "base/options.def"
#undef OPTION
    };
    unsigned option = record->slot % (sizeof options / sizeof *options);
    long min = options[option].min, max = options[option].max;
    long value = record->size & 1 ? record->fine : record->fine == 0 ? min : max / record->fine;
    int expected = !options[option].settable ? EPERM : value < min || value > max ? ERANGE : 0;
    uint64_t refusals = fuzz_system.refusals;
    long before, now;

    FUZZ_CHECK(hakmem_option_get(options[option].name, &before) == 0);
    int result = hakmem_option_set(options[option].name, value);
    if (result == ENOMEM && fuzz_system.refusals != refusals)
        expected = ENOMEM;
    FUZZ_CHECK(result == expected);
    FUZZ_CHECK(hakmem_option_get(options[option].name, &now) == 0);
    FUZZ_CHECK(now == (expected == 0 ? value : before));
    FUZZ_CHECK(now >= min && now <= max);
}

/* What is left of a block from anywhere in it: all callers that check before they write ask that.
 * Behind the 2 MiB of addresses in which the block starts it may be unknown. */
static void step_object_size(const struct block *slot, const struct record *record)
{
    const size_t known = (2 << 20) - (uintptr_t)slot->address % (2 << 20);
    size_t offset =
        ((size_t)record->size << 8 | record->fine) % (slot->usable + (slot->usable == 0));

    if (slot->address)
        core_check_object(
            (const char *)slot->address + offset, slot->usable - offset, offset < known);
}

/* For the next record, whatever it is. */
static void step_name_size(const struct record *record)
{
    crew.is_sized = true;
    crew.named_size = decode_named_size(record);
}

static void step_refuse(const struct record *record)
{
    fuzz_system.grants = record->slot;
    fuzz_system.refusals_left = record->fine == 255 ? UINT32_MAX : record->fine;
}

/* ---- Records --------------------------------------------------------------------------------- */

enum step {
    STEP_MALLOC,
    STEP_CALLOC,
    STEP_REALLOC,
    STEP_REALLOCARRAY,
    STEP_ALIGNED_ALLOC,
    STEP_MEMALIGN,
    STEP_POSIX_MEMALIGN,
    STEP_VALLOC,
    STEP_FREE,
    STEP_FREE_SIZED,
    STEP_FREE_DOWN,
    STEP_NUDGE,
    STEP_VERIFY,
    STEP_TOO_LARGE,
    STEP_BAD_ALIGNMENT,
    STEP_FLUSH,
    STEP_PURGE,
    STEP_TRIM,
    STEP_OPTION,
    STEP_CLOCK,
    STEP_REFUSE,
    STEP_OTHER_NAMES,
    STEP_REPORT,
    STEP_CHECK,
    STEP_SWITCH,
    STEP_EXIT,
    STEP_FREE_FORGED,
    STEP_MALLOCX,
    STEP_RALLOCX,
    STEP_XALLOCX,
    STEP_NAME_SIZE,
    STEP_OBJECT_SIZE,
    STEP_COUNT
};

_Static_assert(STEP_COUNT == 32, "five bits name a step");

static const char *const step_names[STEP_COUNT] = {
    "malloc",     "calloc",          "realloc", "reallocarray", "aligned_alloc",
    "memalign",   "posix_memalign",  "valloc",  "free",         "free_sized",
    "free, down", "resize a little", "verify",  "too large",    "bad alignment",
    "flush",      "purge",           "trim",    "option",       "clock",
    "refuse",     "other names",     "report",  "check",        "switch",
    "exit",       "free, forged",    "mallocx", "rallocx",      "xallocx",
    "size",       "object size",
};

/* All others are steps of the whole. */
static bool is_on_slot(enum step step)
{
    return step <= STEP_VERIFY || (step >= STEP_FREE_FORGED && step <= STEP_XALLOCX);
}

static void explain(const struct actor *actor, enum step step, const struct record *record)
{
    if (fuzz_explain)
        fprintf(
            stderr, "record %llu: thread %u: %s, %u times, slot %u, size %zu, fine %u\n",
            (unsigned long long)crew.records, actor->seat.index, step_names[step],
            decode_repetitions(record), record->slot * 4u,
            step == STEP_NAME_SIZE ? decode_named_size(record) : decode_size(record), record->fine);
}

static void step_on_slot(
    struct actor *actor, enum step step, struct block *slot, const struct record *record)
{
    static const enum operation operations[] = {
        OP_MALLOC,        OP_CALLOC,   OP_REALLOC,        OP_REALLOCARRAY,
        OP_ALIGNED_ALLOC, OP_MEMALIGN, OP_POSIX_MEMALIGN, OP_VALLOC,
    };

    if (step == STEP_REALLOC || step == STEP_REALLOCARRAY)
        step_resize(actor, slot, operations[step], record);
    else if (step <= STEP_VALLOC)
        step_allocate(actor, slot, operations[step], record);
    else if (step == STEP_NUDGE)
        step_nudge(actor, slot, record);
    else if (step == STEP_VERIFY)
        step_verify(actor, slot);
    else if (step == STEP_FREE_FORGED)
        step_free_forged(actor, slot);
    else if (step >= STEP_MALLOCX)
        step_flags(actor, slot, OP_MALLOCX + (step - STEP_MALLOCX), record);
    else
        step_free(actor, slot, step == STEP_FREE_SIZED);
}

static void step_once(struct actor *actor, enum step step, const struct record *record)
{
    switch (step) {
    case STEP_TOO_LARGE:
        step_too_large(actor, slot_at(record->slot * 4u), record);
        step_verify(actor, slot_at(record->slot * 4u));
        break;
    case STEP_BAD_ALIGNMENT:
        step_bad_alignment(actor, record);
        break;
    case STEP_FLUSH:
        perform_upkeep(&actor->seat, OP_FLUSH);
        break;
    case STEP_PURGE:
        perform_upkeep(&actor->seat, OP_PURGE);
        break;
    case STEP_TRIM:
        perform_upkeep(&actor->seat, OP_TRIM);
        break;
    case STEP_OPTION:
        step_option(record);
        break;
    case STEP_CLOCK:
        fuzz_system.now_ms += (uint64_t)record->fine << (record->size % 12);
        break;
    case STEP_REFUSE:
        step_refuse(record);
        break;
    case STEP_OTHER_NAMES:
        step_other_names(actor, record);
        break;
    case STEP_REPORT:
        step_report(record);
        break;
    case STEP_NAME_SIZE:
        step_name_size(record);
        break;
    case STEP_OBJECT_SIZE:
        step_object_size(slot_at(record->slot * 4u), record);
        break;
    default:
        check_invariants();
    }
}

/* True when the turn changes. */
static bool step_to_another(struct actor *actor, enum step step, const struct record *record)
{
    if (step == STEP_EXIT) {
        actor->leaves = true;
        actor->late_first = record->slot * 4u;
        actor->late_count = record->fine % 32;
    }
    crew.current = (actor->seat.index + 1 + record->size % (ACTORS - 1)) % ACTORS;
    return true;
}

static bool run_record(struct actor *actor, const struct record *record)
{
    enum step step = record->step % STEP_COUNT;
    unsigned repetitions = decode_repetitions(record);

    explain(actor, step, record);
    if (step == STEP_SWITCH || step == STEP_EXIT)
        return step_to_another(actor, step, record);
    if (!is_on_slot(step)) {
        step_once(actor, step, record);
        return false;
    }
    for (unsigned i = 0; i < repetitions; i++)
        step_on_slot(
            actor, step, slot_at(record->slot * 4u + (step == STEP_FREE_DOWN ? SLOTS - i : i)),
            record);
    return false;
}

void steps_run(struct actor *actor)
{
    while (crew.input.left >= RECORD_BYTES) {
        struct record record = {.is_sized = crew.is_sized, .named_size = crew.named_size};

        crew.is_sized = false;
        memcpy(&record, crew.input.next, RECORD_BYTES);
        crew.input.next += RECORD_BYTES;
        crew.input.left -= RECORD_BYTES;
        actor->seat.operation = ++crew.records;
        if (run_record(actor, &record))
            return;
    }
    crew.input.left = 0;
}

void steps_use_late(struct actor *actor, unsigned slot)
{
    static const struct record small = {.size = 6, .fine = 128};

    if (slot_at(slot)->address)
        step_free(actor, slot_at(slot), false);
    else
        step_allocate(actor, slot_at(slot), OP_MALLOC, &small);
}
