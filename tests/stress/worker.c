/* One thread's work: random operations on the slots of its seat, each checked on the spot.
 *
 * A step draws a slot. An empty slot gets a block from one of the allocating calls; the block in
 * a full one is freed, resized, asked for its size or handed to another thread. Phases of a few
 * thousand steps vary the number of slots in use and whether blocks pile up or drain away.
 *
 * The order of the checks matters: a block's bits leave the shadow before the call that may free
 * it, for after that call another thread can own the address already. */
#include "content.h"
#include "model.h"
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
    UP_TO_MALLOC = 152,
    UP_TO_CALLOC = UP_TO_MALLOC + 44,
    UP_TO_REALLOC = UP_TO_CALLOC + 10,
    UP_TO_REALLOCARRAY = UP_TO_REALLOC + 6,
    UP_TO_ALIGNED_ALLOC = UP_TO_REALLOCARRAY + 15,
    UP_TO_MEMALIGN = UP_TO_ALIGNED_ALLOC + 12,
    UP_TO_POSIX_MEMALIGN = UP_TO_MEMALIGN + 15,

    UP_TO_RESIZE = 40,
    UP_TO_RESIZE_ARRAY = UP_TO_RESIZE + 10,
    UP_TO_ASK = UP_TO_RESIZE_ARRAY + 12,
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

/* Splits a size into count * element for calloc and reallocarray, without dividing: sizes that
 * are no multiple of the element stay one element. */
static void split_size(size_t size, uint64_t draw, size_t *count, size_t *element)
{
    unsigned shift = draw & 7;
    bool even = (size & (((size_t)1 << shift) - 1)) == 0;

    *count = even ? size >> shift : 1;
    *element = even ? (size_t)1 << shift : size;
}

static void *call_aligned(struct seat *seat, struct block *slot, uint64_t draw)
{
    const struct entries *entries = seat->entries;
    unsigned log2 = random_align_log2(draw >> 8);
    size_t align = (size_t)1 << log2;
    void *address = NULL;
    int code;

    slot->align_log2 = (uint8_t)log2;
    switch (slot->origin) {
    case OP_ALIGNED_ALLOC:
        return entries->aligned_alloc(align, slot->size);
    case OP_MEMALIGN:
        /* behaviour 17: an alignment that is no power of two is rounded up to the next. */
        if (((draw >> 56) & 255) < ODD_ALIGN_CHANCE)
            align -= align >> 2;
        return entries->memalign(align, slot->size);
    case OP_POSIX_MEMALIGN:
        code = entries->posix_memalign(&address, align, slot->size);
        if (UNLIKELY(code != 0))
            report_failure(seat, OP_POSIX_MEMALIGN, slot, "returned %d", code);
        return address;
    default:
        slot->align_log2 = 12;
        return entries->valloc(slot->size);
    }
}

static void check_zero(struct seat *seat, struct block *slot)
{
    size_t wrong = content_first_nonzero(slot->address, slot->size);

    if (UNLIKELY(wrong != CONTENT_INTACT))
        report_failure(
            seat, OP_CALLOC, slot, "calloc memory is not zero: byte 0x%02x at offset %zu",
            ((uint8_t *)slot->address)[wrong], wrong);
}

static void allocate(struct seat *seat, struct block *slot)
{
    const struct entries *entries = seat->entries;
    uint64_t draw = random_next(&seat->random);
    unsigned choice = draw & 255;
    size_t size, count, element;
    void *address;

    if (UNLIKELY(!draw_size(seat, &size))) {
        entries->free(NULL);
        model_check_errno(seat, OP_FREE, slot);
        seat->counts[OP_FREE]++;
        return;
    }
    slot->size = (uint32_t)size;
    slot->usable = 0;
    slot->align_log2 = 4;
    if (choice < UP_TO_MALLOC) {
        slot->origin = OP_MALLOC;
        address = entries->malloc(size);
    } else if (choice < UP_TO_CALLOC) {
        slot->origin = OP_CALLOC;
        split_size(size, draw >> 8, &count, &element);
        address = entries->calloc(count, element);
    } else if (choice < UP_TO_REALLOC) {
        slot->origin = OP_REALLOC;
        /* behaviour 8: realloc(NULL, 0) allocates. */
        address = entries->realloc(NULL, size);
    } else if (choice < UP_TO_REALLOCARRAY) {
        slot->origin = OP_REALLOCARRAY;
        split_size(size, draw >> 8, &count, &element);
        address = entries->reallocarray(NULL, count, element);
    } else {
        slot->origin = choice < UP_TO_ALIGNED_ALLOC    ? OP_ALIGNED_ALLOC
                       : choice < UP_TO_MEMALIGN       ? OP_MEMALIGN
                       : choice < UP_TO_POSIX_MEMALIGN ? OP_POSIX_MEMALIGN
                                                       : OP_VALLOC;
        address = call_aligned(seat, slot, draw);
    }
    seat->counts[slot->origin]++;
    seat->fresh++;
    model_admit(seat, slot, address);
    if (slot->origin == OP_CALLOC)
        check_zero(seat, slot);
    model_fill(seat, slot);
}

static void release(struct seat *seat, struct block *slot, bool sized)
{
    const struct entries *entries = seat->entries;
    enum operation operation = OP_FREE;

    if (sized) {
        /* C23: each sized free belongs to its own way of allocating. */
        if (slot->origin == OP_ALIGNED_ALLOC)
            operation = OP_FREE_ALIGNED_SIZED;
        else if (slot->origin <= OP_REALLOCARRAY)
            operation = OP_FREE_SIZED;
    }
    model_retire(seat, operation, slot);
    if (operation == OP_FREE)
        entries->free(slot->address);
    else if (operation == OP_FREE_SIZED)
        entries->free_sized(slot->address, slot->size);
    else
        entries->free_aligned_sized(slot->address, (size_t)1 << slot->align_log2, slot->size);
    model_check_errno(seat, operation, slot);
    seat->counts[operation]++;
    seat->freed++;
    budget_return(seat, slot->size);
    slot->address = NULL;
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
    const struct entries *entries = seat->entries;
    struct block old = *slot;
    size_t size = draw_resize(seat, old.size);
    size_t kept = size < old.size ? size : old.size;
    size_t count, element;
    void *address;

    if (UNLIKELY(!budget_take(seat, size))) {
        seat->short_of_budget++;
        release(seat, slot, false);
        return;
    }
    model_retire(seat, operation, slot);
    slot->size = (uint32_t)size;
    slot->align_log2 = 4;
    slot->origin = (uint8_t)operation;
    if (operation == OP_REALLOC) {
        address = entries->realloc(old.address, size);
    } else {
        split_size(size, seat->operation, &count, &element);
        address = entries->reallocarray(old.address, count, element);
    }
    seat->counts[operation]++;
    budget_return(seat, old.size);
    if (UNLIKELY(size == 0)) {
        /* behaviour 12: a resize to nothing frees and returns NULL. */
        if (address != NULL)
            report_failure(seat, operation, &old, "to size 0 returned %p", address);
        model_check_errno(seat, operation, &old);
        seat->freed++;
        slot->address = NULL;
        return;
    }
    model_admit(seat, slot, address);
    if (UNLIKELY(!content_matches(address, old.pattern, old.size, kept, slot->usable)))
        report_failure(
            seat, operation, slot,
            "contents lost by realloc from %u bytes at %p (usable %u): offset %zu", old.size,
            old.address, old.usable,
            content_first_wrong(address, old.pattern, old.size, kept, slot->usable));
    model_fill(seat, slot);
}

/* behaviour 21: the usable size is the same for the whole life of the block. */
static void ask(struct seat *seat, const struct block *slot)
{
    size_t usable = seat->entries->malloc_usable_size(slot->address);

    if (UNLIKELY(usable != slot->usable))
        report_failure(
            seat, OP_USABLE_SIZE, slot, "usable size was %u and is %zu now", slot->usable, usable);
    model_check_errno(seat, OP_USABLE_SIZE, slot);
    seat->counts[OP_USABLE_SIZE]++;
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
    static const struct block none;
    uint64_t every = seat->run->options->purge_every;
    enum operation operation = OP_FLUSH;

    seat->since_purge += (uint64_t)1 << RARE_LOG2;
    if (every != 0 && seat->since_purge >= every) {
        seat->since_purge = 0;
        operation = (random_next(&seat->random) >> 62) == 0 ? OP_TRIM : OP_PURGE;
    }
    if (operation == OP_FLUSH)
        hakmem_thread_flush();
    else if (operation == OP_PURGE)
        (void)hakmem_purge();
    else
        (void)seat->entries->malloc_trim(0);
    model_check_errno(seat, operation, &none);
    seat->counts[operation]++;
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
    else if (choice < UP_TO_ASK)
        ask(seat, slot);
    else
        release(seat, slot, choice < UP_TO_FREE_SIZED);
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
            release(seat, &seat->slots[i], (i & 7) == 0);
    report_sits_here(NULL);
}

void worker_free_places(struct seat *seat)
{
    seat->errno_place = &errno;
    report_sits_here(seat);
    errno = ERRNO_MARK;
    for (size_t i = 0; i < EXCHANGE_PLACES; i++)
        if (seat->run->places[i].block.address != NULL)
            release(seat, &seat->run->places[i].block, false);
    report_sits_here(NULL);
}
