/* The calls, and what the model says about each.
 *
 * The order of the checks matters: a block's bits leave the shadow before the call that may free
 * it, for after that call another thread can own the address already. */
#include "perform.h"

#include "content.h"
#include "model.h"

#include <errno.h>

const char *const operation_names[OP_COUNT] = {
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "free_sized",
    "free_aligned_sized",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "malloc_usable_size",
    "malloc_trim",
    "hakmem_purge",
    "hakmem_thread_flush",
};

/* Splits a size into count * element for calloc and reallocarray, without dividing: sizes that
 * are no multiple of the element stay one element. */
static void split_size(const struct request *request, size_t *count, size_t *element)
{
    unsigned shift = request->split_log2;
    bool even = (request->size & (((size_t)1 << shift) - 1)) == 0;

    *count = even ? request->size >> shift : 1;
    *element = even ? (size_t)1 << shift : request->size;
}

static uint64_t refusals(const struct seat *seat)
{
    return seat->refusals != NULL ? *seat->refusals : 0;
}

/* Says whether NULL is an honest answer: the system has refused memory during the call. */
static bool failed_honestly(const struct seat *seat, const void *address, uint64_t refused_before)
{
    bool honest =
        address == NULL && refusals(seat) != refused_before && *seat->errno_place == ENOMEM;

    if (UNLIKELY(honest))
        *seat->errno_place = ERRNO_MARK;
    return honest;
}

static void *call_aligned(struct seat *seat, struct block *slot, const struct request *request)
{
    const struct entries *entries = seat->entries;
    size_t align = (size_t)1 << request->align_log2;
    void *address = NULL;
    int code;

    slot->align_log2 = (uint8_t)request->align_log2;
    switch (slot->origin) {
    case OP_ALIGNED_ALLOC:
        return entries->aligned_alloc(align, slot->size);
    case OP_MEMALIGN:
        /* behaviour 17: an alignment that is no power of two is rounded up to the next. */
        return entries->memalign(request->odd_align ? align - (align >> 2) : align, slot->size);
    case OP_POSIX_MEMALIGN:
        code = entries->posix_memalign(&address, align, slot->size);
        if (UNLIKELY(code == ENOMEM && seat->refusals != NULL && *seat->errno_place == ERRNO_MARK))
            *seat->errno_place = ENOMEM; /* as the others tell it */
        else if (UNLIKELY(code != 0))
            report_failure(seat, OP_POSIX_MEMALIGN, slot, "returned %d", code);
        return address;
    default:
        slot->align_log2 = 12;
        return entries->valloc(slot->size);
    }
}

static void *call(struct seat *seat, struct block *slot, const struct request *request)
{
    const struct entries *entries = seat->entries;
    size_t count, element;

    switch (slot->origin) {
    case OP_MALLOC:
        return entries->malloc(request->size);
    case OP_CALLOC:
        split_size(request, &count, &element);
        return entries->calloc(count, element);
    case OP_REALLOC:
        /* behaviour 8: realloc(NULL, 0) allocates. */
        return entries->realloc(NULL, request->size);
    case OP_REALLOCARRAY:
        split_size(request, &count, &element);
        return entries->reallocarray(NULL, count, element);
    default:
        return call_aligned(seat, slot, request);
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

void perform_allocate(
    struct seat *seat, struct block *slot, enum operation operation, const struct request *request)
{
    uint64_t refused_before = refusals(seat);
    void *address;

    slot->size = (uint32_t)request->size;
    slot->usable = 0;
    slot->align_log2 = 4;
    slot->origin = (uint8_t)operation;
    address = call(seat, slot, request);
    seat->counts[operation]++;
    if (failed_honestly(seat, address, refused_before)) {
        budget_return(seat, request->size);
        return;
    }
    seat->fresh++;
    model_admit(seat, slot, address);
    if (operation == OP_CALLOC)
        check_zero(seat, slot);
    model_fill(seat, slot);
}

void perform_release(struct seat *seat, struct block *slot, bool sized)
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

/* behaviour 12: a resize to nothing frees and returns NULL. */
static void end_by_resize(
    struct seat *seat, struct block *slot, const struct block *old, const void *address)
{
    enum operation operation = slot->origin;

    if (address != NULL)
        report_failure(seat, operation, old, "to size 0 returned %p", address);
    model_check_errno(seat, operation, old);
    seat->freed++;
    slot->address = NULL;
}

void perform_resize(
    struct seat *seat, struct block *slot, enum operation operation, const struct request *request)
{
    const struct entries *entries = seat->entries;
    struct block old = *slot;
    uint64_t refused_before = refusals(seat);
    size_t size = request->size;
    size_t kept = size < old.size ? size : old.size;
    size_t count, element;
    void *address;

    model_retire(seat, operation, slot);
    slot->size = (uint32_t)size;
    slot->align_log2 = 4;
    slot->origin = (uint8_t)operation;
    if (operation == OP_REALLOC) {
        address = entries->realloc(old.address, size);
    } else {
        split_size(request, &count, &element);
        address = entries->reallocarray(old.address, count, element);
    }
    seat->counts[operation]++;
    if (UNLIKELY(size == 0)) {
        budget_return(seat, old.size);
        end_by_resize(seat, slot, &old, address);
        return;
    }
    if (size > old.usable && failed_honestly(seat, address, refused_before)) {
        /* behaviour 13: the block is as before. */
        budget_return(seat, size);
        *slot = old;
        model_readmit(seat, operation, slot);
        return;
    }
    budget_return(seat, old.size);
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
void perform_ask(struct seat *seat, const struct block *slot)
{
    size_t usable = seat->entries->malloc_usable_size(slot->address);

    if (UNLIKELY(usable != slot->usable))
        report_failure(
            seat, OP_USABLE_SIZE, slot, "usable size was %u and is %zu now", slot->usable, usable);
    model_check_errno(seat, OP_USABLE_SIZE, slot);
    seat->counts[OP_USABLE_SIZE]++;
}

void perform_upkeep(struct seat *seat, enum operation operation)
{
    static const struct block none;

    if (operation == OP_FLUSH)
        hakmem_thread_flush();
    else if (operation == OP_PURGE)
        (void)hakmem_purge();
    else
        (void)seat->entries->malloc_trim(0);
    model_check_errno(seat, operation, &none);
    seat->counts[operation]++;
}
