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
    "mallocx",
    "rallocx",
    "xallocx",
    "dallocx",
    "sdallocx",
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

static int flags_of(const struct request *request)
{
    return (int)request->align_log2 | (request->zero ? FLAG_ZERO : 0);
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
        if (UNLIKELY(code != 0 && !(code == ENOMEM && seat->refusals != NULL)))
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
    case OP_MALLOCX:
        slot->align_log2 = (uint8_t)request->align_log2;
        return entries->mallocx(request->size, flags_of(request));
    default:
        return call_aligned(seat, slot, request);
    }
}

/* The bytes of the new block from one offset to another. */
static void check_zero(const struct seat *seat, const struct block *slot, size_t from, size_t to)
{
    size_t wrong = content_first_nonzero(slot->address, from, to);

    if (UNLIKELY(wrong != CONTENT_INTACT))
        report_failure(
            seat, slot->origin, slot, "memory is not zero: byte 0x%02x at offset %zu",
            ((uint8_t *)slot->address)[wrong], wrong);
}

/* docs/hardening.md: the usable size is what was asked for, and all memory that is handed out reads
 * as zero, from `from` on. */
static void check_hardened(const struct seat *seat, const struct block *slot, size_t from)
{
    /* For jemalloc's calls no bytes are one. */
    bool one = slot->size == 0 && slot->origin >= OP_MALLOCX && slot->usable == 1;

    if (UNLIKELY(slot->usable != slot->size && !one))
        report_failure(seat, slot->origin, slot, "usable size differs in the hardened preset");
    check_zero(seat, slot, from, slot->usable);
}

/* jemalloc's manual: nallocx tells the real size that the block of mallocx has, here the least; and
 * what is asked to be zero is so up to the real size, from which rallocx goes on. */
static void check_mallocx(
    const struct seat *seat, const struct block *slot, const struct request *request)
{
    size_t told = seat->entries->nallocx(request->size, flags_of(request));

    if (UNLIKELY(told < slot->size || told > slot->usable))
        report_failure(seat, OP_MALLOCX, slot, "nallocx told %zu", told);
    if (request->zero)
        check_zero(seat, slot, 0, slot->usable);
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
    if (seat->run->hardened)
        check_hardened(seat, slot, 0);
    if (operation == OP_CALLOC)
        check_zero(seat, slot, 0, slot->size);
    else if (operation == OP_MALLOCX)
        check_mallocx(seat, slot, request);
    model_fill(seat, slot);
}

/* Which free belongs to how the block was made; what jemalloc's calls made may go by any. */
static enum operation way_to_free(const struct block *slot, bool sized)
{
    if (slot->origin >= OP_MALLOCX)
        return sized ? OP_SDALLOCX : (slot->pattern & 1) != 0 ? OP_DALLOCX : OP_FREE;
    /* C23: each sized free belongs to its own way of allocating. */
    if (sized && slot->origin == OP_ALIGNED_ALLOC)
        return OP_FREE_ALIGNED_SIZED;
    return sized && slot->origin <= OP_REALLOCARRAY ? OP_FREE_SIZED : OP_FREE;
}

static void call_free(
    const struct entries *entries, enum operation operation, const struct block *slot)
{
    switch (operation) {
    case OP_FREE_SIZED:
        entries->free_sized(slot->address, slot->size);
        break;
    case OP_FREE_ALIGNED_SIZED:
        entries->free_aligned_sized(slot->address, (size_t)1 << slot->align_log2, slot->size);
        break;
    case OP_DALLOCX:
        entries->dallocx(slot->address, slot->align_log2);
        break;
    case OP_SDALLOCX:
        /* Any size from the one that was asked for to the real one. */
        entries->sdallocx(
            slot->address, (slot->pattern & 1) != 0 ? slot->usable : slot->size, slot->align_log2);
        break;
    default:
        entries->free(slot->address);
    }
}

void perform_release(struct seat *seat, struct block *slot, bool sized)
{
    enum operation operation = way_to_free(slot, sized);

    model_retire(seat, operation, slot);
    call_free(seat->entries, operation, slot);
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

/* A resized block has what the old one had, as far as both reach. From the real size that it had,
 * all is zero up to the one that it has, where that was asked for. */
static void check_resized(
    const struct seat *seat, const struct block *slot, const struct block *old, bool zero)
{
    size_t kept = slot->size < old->size ? slot->size : old->size;

    if (UNLIKELY(!content_matches(slot->address, old->pattern, old->size, kept, slot->usable)))
        report_failure(
            seat, slot->origin, slot,
            "contents lost by a resize from %u bytes at %p (usable %u): offset %zu", old->size,
            old->address, old->usable,
            content_first_wrong(slot->address, old->pattern, old->size, kept, slot->usable));
    if (zero)
        check_zero(seat, slot, old->usable, slot->usable);
}

static void *call_resize(
    const struct entries *entries, enum operation operation, void *block,
    const struct request *request)
{
    size_t count, element;

    if (operation == OP_REALLOC)
        return entries->realloc(block, request->size);
    if (operation == OP_RALLOCX)
        return entries->rallocx(block, request->size, flags_of(request));
    split_size(request, &count, &element);
    return entries->reallocarray(block, count, element);
}

void perform_resize(
    struct seat *seat, struct block *slot, enum operation operation, const struct request *request)
{
    bool flags = operation == OP_RALLOCX;
    struct block old = *slot;
    uint64_t refused_before = refusals(seat);
    size_t size = request->size;
    bool has_to_move;
    void *address;

    model_retire(seat, operation, slot);
    slot->size = (uint32_t)size;
    slot->align_log2 = flags ? (uint8_t)request->align_log2 : 4;
    slot->origin = (uint8_t)operation;
    has_to_move = size > old.usable || ((uintptr_t)old.address & (model_alignment(slot) - 1)) != 0;
    address = call_resize(seat->entries, operation, old.address, request);
    seat->counts[operation]++;
    if (UNLIKELY(size == 0 && !flags)) {
        budget_return(seat, old.size);
        end_by_resize(seat, slot, &old, address);
        return;
    }
    if (has_to_move && failed_honestly(seat, address, refused_before)) {
        /* behaviour 13: the block is as before. */
        budget_return(seat, size);
        *slot = old;
        model_readmit(seat, operation, slot);
        return;
    }
    budget_return(seat, old.size);
    model_admit(seat, slot, address);
    check_resized(seat, slot, &old, flags && request->zero);
    if (seat->run->hardened)
        check_hardened(seat, slot, old.usable);
    model_fill(seat, slot);
}

void perform_resize_in_place(struct seat *seat, struct block *slot, const struct request *request)
{
    struct block old = *slot;
    int flags = old.align_log2 | (request->zero ? FLAG_ZERO : 0);
    size_t real;

    model_retire(seat, OP_XALLOCX, slot);
    real = seat->entries->xallocx(old.address, request->size, request->extra, flags);
    seat->counts[OP_XALLOCX]++;
    if (real < request->size) {
        /* There is no room: the block is as before. */
        budget_return(seat, request->size);
        if (UNLIKELY(real != old.usable))
            report_failure(seat, OP_XALLOCX, slot, "could not, and returned %zu", real);
        model_check_errno(seat, OP_XALLOCX, slot);
        model_readmit(seat, OP_XALLOCX, slot);
        return;
    }
    budget_return(seat, old.size);
    slot->size = (uint32_t)request->size;
    slot->origin = OP_XALLOCX;
    model_admit(seat, slot, old.address);
    if (UNLIKELY(real != slot->usable))
        report_failure(seat, OP_XALLOCX, slot, "returned %zu", real);
    check_resized(seat, slot, &old, request->zero || seat->run->hardened);
    model_fill(seat, slot);
}

/* behaviour 21: the usable size is the same for the whole life of the block. */
void perform_ask(struct seat *seat, const struct block *slot)
{
    size_t usable = seat->entries->malloc_usable_size(slot->address);
    size_t real = seat->entries->sallocx(slot->address, 0);

    if (UNLIKELY(usable != slot->usable || real != usable))
        report_failure(
            seat, OP_USABLE_SIZE, slot, "usable size was %u and is %zu now, %zu by sallocx",
            slot->usable, usable, real);
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
