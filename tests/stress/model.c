/* The checks of the model: what a block must be at birth and at its end. */
#include "model.h"

#include "content.h"
#include "random.h"
#include "shadow.h"

/* Tells which other block of this seat lies in the way, as far as that is known here. */
static void fail_overlap(
    const struct seat *seat, enum operation operation, const struct block *block)
{
    uintptr_t from = (uintptr_t)block->address;
    uintptr_t to = from + block->usable;

    for (size_t i = 0; i <= seat->run->slots_mask; i++) {
        const struct block *other = &seat->slots[i];
        uintptr_t start = (uintptr_t)other->address;

        if (start != 0 && other != block && start < to && from < start + other->usable)
            report_failure(
                seat, operation, block, "blocks overlap: live block %p, size %u, usable %u",
                other->address, other->size, other->usable);
    }
    report_failure(seat, operation, block, "blocks overlap: a live block of another thread");
}

static void verify_contents(
    const struct seat *seat, enum operation operation, const struct block *block)
{
    const uint8_t *bytes = block->address;
    bool intact =
        content_matches(block->address, block->pattern, block->size, block->size, block->usable);

    if (UNLIKELY(!intact))
        report_failure(
            seat, operation, block, "contents changed while live: offset %zu",
            content_first_wrong(
                block->address, block->pattern, block->size, block->size, block->usable));
    if (UNLIKELY(
            content_has_last_byte(block->size, block->usable) &&
            bytes[block->usable - 1] != content_last_byte(block->pattern)))
        report_failure(
            seat, operation, block, "contents changed while live: last usable byte, offset %u",
            block->usable - 1);
}

/* A block without a byte has its address all the same. */
static size_t shadowed(const struct block *block)
{
    return block->usable != 0 ? block->usable : 1;
}

void model_retire(struct seat *seat, enum operation operation, const struct block *block)
{
    verify_contents(seat, operation, block);
    if (UNLIKELY(!shadow_clear(block->address, shadowed(block))))
        report_failure(
            seat, operation, block,
            "blocks overlap: the shadow lost this one, another ended in it");
}

void model_readmit(struct seat *seat, enum operation operation, const struct block *block)
{
    if (UNLIKELY(!shadow_mark(block->address, shadowed(block))))
        fail_overlap(seat, operation, block);
    verify_contents(seat, operation, block);
}

void model_admit(struct seat *seat, struct block *slot, void *address)
{
    enum operation operation = slot->origin;
    size_t usable;

    slot->address = address;
    if (UNLIKELY(address == NULL))
        report_failure(seat, operation, slot, "returned NULL, errno %d", *seat->errno_place);
    model_check_errno(seat, operation, slot);
    slot->birth_operation = (uint32_t)seat->operation;
    slot->birth_seat = (uint16_t)seat->index;
    if (UNLIKELY(((uintptr_t)address & (model_alignment(slot) - 1)) != 0))
        report_failure(
            seat, operation, slot, "misaligned: %p is no multiple of %zu", address,
            model_alignment(slot));
    usable = seat->entries->malloc_usable_size(address);
    if (UNLIKELY(usable < slot->size || usable > UINT32_MAX))
        report_failure(
            seat, operation, slot, "usable size %zu does not fit the request of %u bytes", usable,
            slot->size);
    slot->usable = (uint32_t)usable;
    if (UNLIKELY(!shadow_covers(address, usable)))
        report_failure(seat, operation, slot, "address beyond %d bits", SHADOW_ADDRESS_BITS);
    if (UNLIKELY(!shadow_mark(address, shadowed(slot))))
        fail_overlap(seat, operation, slot);
}

void model_fill(struct seat *seat, struct block *slot)
{
    slot->pattern = random_next(&seat->random);
    content_write(slot->address, slot->pattern, slot->size, slot->usable);
}
