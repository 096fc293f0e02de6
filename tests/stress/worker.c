/* One thread's work: random operations on the slots of its seat, each checked on the spot.
 *
 * A step draws a slot. An empty slot gets a block from one of the allocating calls; the block in
 * a full one is freed, resized, asked for its size or handed to another thread. Phases of a few
 * thousand steps vary the number of slots in use and whether blocks pile up or drain away. */
#include "model.h"
#include "perform.h"
#include "random.h"

#include <errno.h>

enum {
    RARE_LOG2 = 12,       /* one step in 4096 is a flush, purge or trim */
    ODD_ALIGN_CHANCE = 8, /* of 256: memalign is given three quarters of the alignment */
    PHASE_LOG2_MIN = 8,
    PHASE_LOG2_MAX = 13
};

/* A draw of 8 bits is compared with these bounds: first those for empty slots, then for full ones,
 * where what is left is a plain free. */
enum {
    UP_TO_MALLOC = 136,
    UP_TO_MALLOCX = UP_TO_MALLOC + 16,
    UP_TO_CALLOC = UP_TO_MALLOCX + 44,
    UP_TO_REALLOC = UP_TO_CALLOC + 10,
    UP_TO_REALLOCARRAY = UP_TO_REALLOC + 6,
    UP_TO_ALIGNED_ALLOC = UP_TO_REALLOCARRAY + 15,
    UP_TO_MEMALIGN = UP_TO_ALIGNED_ALLOC + 12,
    UP_TO_POSIX_MEMALIGN = UP_TO_MEMALIGN + 15,

    UP_TO_RESIZE = 40,
    UP_TO_RESIZE_ARRAY = UP_TO_RESIZE + 10,
    UP_TO_RALLOCX = UP_TO_RESIZE_ARRAY + 12,
    UP_TO_XALLOCX = UP_TO_RALLOCX + 12,
    UP_TO_ASK = UP_TO_XALLOCX + 12,
    UP_TO_FREE_SIZED = UP_TO_ASK + 50
};

/* A size that the budget allows, already taken from it; false when there is none at all. */
static bool draw_size(struct seat *seat, size_t *size)
{
    *size = random_size(&seat->random);
    if (budget_take(seat, *size))
        return true;
    seat->short_of_budget++;
    *size &= 127;
    return budget_take(seat, *size);
}

/* The flags of jemalloc's calls: half of them name no alignment. */
static void draw_flags(struct request *request, uint64_t draw)
{
    request->zero = ((draw >> 48) & 1) != 0;
    request->align_log2 = ((draw >> 49) & 1) != 0 ? random_align_log2(draw) : 0;
}

static void allocate(struct seat *seat, struct block *slot)
{
    uint64_t draw = random_next(&seat->random);
    unsigned choice = draw & 255;
    struct request request = {.split_log2 = (draw >> 8) & 7};
    enum operation operation;

    if (UNLIKELY(!draw_size(seat, &request.size))) {
        seat->entries->free(NULL);
        model_check_errno(seat, OP_FREE, slot);
        seat->counts[OP_FREE]++;
        return;
    }
    operation = choice < UP_TO_MALLOC           ? OP_MALLOC
                : choice < UP_TO_MALLOCX        ? OP_MALLOCX
                : choice < UP_TO_CALLOC         ? OP_CALLOC
                : choice < UP_TO_REALLOC        ? OP_REALLOC
                : choice < UP_TO_REALLOCARRAY   ? OP_REALLOCARRAY
                : choice < UP_TO_ALIGNED_ALLOC  ? OP_ALIGNED_ALLOC
                : choice < UP_TO_MEMALIGN       ? OP_MEMALIGN
                : choice < UP_TO_POSIX_MEMALIGN ? OP_POSIX_MEMALIGN
                                                : OP_VALLOC;
    if (operation == OP_MALLOCX) {
        draw_flags(&request, draw >> 8);
    } else if (operation >= OP_ALIGNED_ALLOC) {
        request.align_log2 = random_align_log2(draw >> 8);
        request.odd_align = ((draw >> 56) & 255) < ODD_ALIGN_CHANCE;
    }
    perform_allocate(seat, slot, operation, &request);
}

/* The size a block is resized to: unrelated, a little more, half as much again, less,
 * or now and then nothing. */
static size_t draw_resize(struct seat *seat, size_t size)
{
    uint64_t draw = random_next(&seat->random);
    size_t limit = (size_t)1 << SIZE_MAX_LOG2;

    if (UNLIKELY(((draw >> 40) & 127) == 0))
        return 0;
    switch (draw & 3) {
    case 0:
        return random_size(&seat->random);
    case 1:
        size += (draw >> 8) & 31;
        break;
    case 2:
        size += (size >> 1) + 1;
        break;
    default:
        size -= size >> (1 + ((draw >> 8) & 3));
    }
    return size < limit ? size : limit;
}

static void resize(struct seat *seat, struct block *slot, enum operation operation)
{
    struct request request = {
        .size = draw_resize(seat, slot->size), .split_log2 = seat->operation & 7};

    if (operation == OP_XALLOCX)
        request.size += request.size == 0; /* jemalloc leaves open what that is */
    if (UNLIKELY(!budget_take(seat, request.size))) {
        seat->short_of_budget++;
        perform_release(seat, slot, false);
        return;
    }
    if (operation >= OP_MALLOCX)
        draw_flags(&request, random_next(&seat->random));
    if (operation != OP_XALLOCX) {
        perform_resize(seat, slot, operation, &request);
        return;
    }
    request.extra = seat->operation & 1 ? 0 : slot->size >> (seat->operation & 6);
    perform_resize_in_place(seat, slot, &request);
}

/* Puts the slot's block into an exchange place and takes what another thread has left there. */
static void hand_over(struct seat *seat, struct block *slot, unsigned draw)
{
    struct exchange *place = &seat->run->places[draw & (EXCHANGE_PLACES - 1)];
    struct block taken;

    if (atomic_exchange_explicit(&place->busy, 1, memory_order_acquire) != 0)
        return;
    taken = place->block;
    place->block = *slot;
    atomic_store_explicit(&place->busy, 0, memory_order_release);
    *slot = taken;
    seat->handed_over++;
}

static void rare(struct seat *seat)
{
    uint64_t every = seat->run->options->purge_every;
    enum operation operation = OP_FLUSH;

    seat->since_purge += (uint64_t)1 << RARE_LOG2;
    if (every != 0 && seat->since_purge >= every) {
        seat->since_purge = 0;
        operation = (random_next(&seat->random) >> 62) == 0 ? OP_TRIM : OP_PURGE;
    }
    perform_upkeep(seat, operation);
    if (walk_shared)
        walk_shared();
}

static void step(struct seat *seat)
{
    uint64_t draw = random_next(&seat->random);
    struct block *slot = &seat->slots[draw & seat->active_mask];
    unsigned choice = (draw >> 24) & 255;

    if (UNLIKELY(((draw >> 52) & ((1u << RARE_LOG2) - 1)) == 0)) {
        rare(seat);
        return;
    }
    if (seat->lean != 0 && (slot->address != NULL) == (seat->lean == 1))
        slot = &seat->slots[(draw >> 32) & seat->active_mask];
    if (((draw >> 16) & 255) < seat->give_chance)
        hand_over(seat, slot, (unsigned)(draw >> 40));
    if (slot->address == NULL)
        allocate(seat, slot);
    else if (choice < UP_TO_RESIZE)
        resize(seat, slot, OP_REALLOC);
    else if (choice < UP_TO_RESIZE_ARRAY)
        resize(seat, slot, OP_REALLOCARRAY);
    else if (choice < UP_TO_RALLOCX)
        resize(seat, slot, OP_RALLOCX);
    else if (choice < UP_TO_XALLOCX)
        resize(seat, slot, OP_XALLOCX);
    else if (choice < UP_TO_ASK)
        perform_ask(seat, slot);
    else
        perform_release(seat, slot, choice < UP_TO_FREE_SIZED);
}

/* Draws the next phase and returns its length in steps. */
static uint64_t begin_phase(struct seat *seat)
{
    uint64_t draw = random_next(&seat->random);
    unsigned bits = 3 + random_below((unsigned)draw, 13);
    unsigned log2 =
        PHASE_LOG2_MIN + random_below((unsigned)(draw >> 16), PHASE_LOG2_MAX - PHASE_LOG2_MIN + 1);
    unsigned kind = (draw >> 32) & 7;

    seat->active_mask = (((uint32_t)1 << bits) - 1) & seat->run->slots_mask;
    seat->lean = kind < 4 ? 0 : kind < 6 ? 1 : 2;
    /* One phase in four is a stream from thread to thread, in the others a block now and then. */
    seat->give_chance = ((draw >> 36) & 3) == 0 ? 128 : 8;
    return (uint64_t)1 << log2;
}

void worker_generation(struct seat *seat)
{
    seat->errno_place = &errno;
    report_sits_here(seat);
    errno = ERRNO_MARK;
    while (seat->operation < seat->generation_end) {
        uint64_t steps = begin_phase(seat);
        uint64_t left = seat->generation_end - seat->operation;

        for (uint64_t i = steps < left ? steps : left; i > 0; i--) {
            step(seat);
            seat->operation++;
        }
        atomic_store_explicit(&seat->published, seat->operation, memory_order_relaxed);
    }
    report_sits_here(NULL);
}

void worker_free_all(struct seat *seat)
{
    seat->errno_place = &errno;
    report_sits_here(seat);
    errno = ERRNO_MARK;
    for (size_t i = 0; i <= seat->run->slots_mask; i++)
        if (seat->slots[i].address != NULL)
            perform_release(seat, &seat->slots[i], (i & 7) == 0);
    report_sits_here(NULL);
}

void worker_free_places(struct seat *seat)
{
    seat->errno_place = &errno;
    report_sits_here(seat);
    errno = ERRNO_MARK;
    for (size_t i = 0; i < EXCHANGE_PLACES; i++)
        if (seat->run->places[i].block.address != NULL)
            perform_release(seat, &seat->run->places[i].block, false);
    report_sits_here(NULL);
}
