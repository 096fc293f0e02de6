/* See address.h. */
#include "trace/address.h"

#include "hardened.h"
#include "os/os.h"
#include "scope/scope.h"
#include "span/big.h"
#include "trace/guard.h"

/* A block that is not in its slab's bitmap may be in a magazine. Then it carries the mark, unless
 * the program has written to it since. */
static bool is_free(const struct slab *slab, unsigned index, const void *block)
{
    if (HARDENED)
        return hardened_is_free(slab, index);
    if (slab_is_sampled(slab))
        return !ATOMIC_LOAD_ACQUIRE(slab_sample((struct slab *)slab, index));
    if (size_class_is_long(slab->size_class))
        return !superslab_is_live(
            ATOMIC_LOAD_RELAXED(superslab_state_of(block)), block, slab->size_class);
    if (ATOMIC_LOAD_RELAXED(&slab->free[index / 64]) >> index % 64 & 1)
        return true;
    return os_is_readable(block, sizeof(mark)) && class_map_is_mark(*(const mark *)block);
}

static void print_use(struct text *text, const struct slab *slab, unsigned index)
{
    const char *block = slab_block(slab, index);
    bool free = is_free(slab, index, block);
    text_hex(text, (uintptr_t)block);
    text_string(text, free ? ", free" : ", live");
    if (free && index >= ATOMIC_LOAD_RELAXED(&slab->watermark))
        text_string(text, ", never handed out");
}

static void print_offset(struct text *text, size_t offset, size_t size, const char *what)
{
    if (offset) {
        text_unsigned(text, offset);
        text_string(text, " bytes into ");
    }
    text_string(text, what);
    text_unsigned(text, size);
    text_string(text, " bytes at ");
}

/* The slab may have just ended: reads its record alone, and follows no pointer to another. */
static bool describe_in_slab(struct text *text, const struct slab *slab, const char *address)
{
    const struct size_class *layout = &size_classes[slab->size_class];
    size_t offset = (size_t)(address - slab->base), index = offset / layout->size;
    if (address < slab->base || index >= slab->blocks) {
        text_string(text, "behind the last block of a slab for blocks of ");
        text_unsigned(text, layout->size);
        text_string(text, " bytes");
        return true;
    }
    print_offset(text, offset % layout->size, layout->size, "a block of ");
    print_use(text, slab, (unsigned)index);
    return true;
}

static void print_distance(struct text *text, size_t bytes)
{
    if (bytes) {
        text_unsigned(text, bytes);
        text_string(text, " bytes behind the end of ");
    } else {
        text_string(text, "right behind the end of ");
    }
}

static bool describe_big(
    struct text *text, const struct big *big, const char *address, size_t near_bytes)
{
    const char *base = big->region.base, *end = base + big->mapped;
    if (address >= end + near_bytes)
        return false;
    if (address >= end)
        print_distance(text, (size_t)(address - end));
    size_t offset = address < end ? (size_t)(address - base) : 0;
    print_offset(text, offset, big->mapped, "a big block of ");
    text_hex(text, (uintptr_t)base);
    text_string(text, big->live ? ", live" : ", free");
    return true;
}

/* For an address in the slot of a guarded block, which may be freed. */
static bool describe_guarded(struct text *text, const char *address)
{
    const struct guard *guard = guard_of(address);
    uint32_t state = ATOMIC_LOAD_ACQUIRE(&guard->state);
    if (state == GUARD_FREE)
        return false;
    if (address >= guard->block + guard->size)
        print_distance(text, (size_t)(address - guard->block) - guard->size);
    else if (address < guard->block) {
        text_unsigned(text, (size_t)(guard->block - address));
        text_string(text, " bytes before ");
    }
    bool inside = address >= guard->block && address < guard->block + guard->size;
    print_offset(
        text, inside ? (size_t)(address - guard->block) : 0, guard->size, "a guarded block of ");
    text_hex(text, (uintptr_t)guard->block);
    text_string(text, state == GUARD_LIVE ? ", live" : ", freed");
    return true;
}

bool address_describe(struct text *text, const void *address, size_t near_bytes)
{
    if (guard_covers(address))
        return describe_guarded(text, address);
    const struct region *region = page_map_nearest(address);
    if (!region)
        return false;
    if (region->kind == REGION_BIG)
        return describe_big(text, (const struct big *)region, address, near_bytes);
    size_t offset = (size_t)((const char *)address - region->base);
    if (SCOPES && region->kind == REGION_SCOPE) {
        if (offset < REGION_SIZE)
            scope_describe(text, address);
        return offset < REGION_SIZE;
    }
    if (offset >= REGION_SIZE) {
        if (offset >= REGION_SIZE + near_bytes)
            return false;
        print_distance(text, offset - REGION_SIZE);
        text_string(text, "a superslab");
        return true;
    }
    const struct slab *slab = slab_lookup(address);
    if (slab)
        return describe_in_slab(text, slab, address);
    text_string(text, "in free memory: what lay there was freed");
    return true;
}

const struct sample *address_sample(const void *address)
{
    const struct region *region = page_map_nearest(address);
    struct slab *slab = NULL;
    if (!region)
        return NULL;
    size_t offset = (size_t)((const char *)address - region->base);
    if (region->kind == REGION_BIG) {
        const struct big *big = (const struct big *)region;
        return offset < big->mapped ? ATOMIC_LOAD_RELAXED(&big->sample) : NULL;
    }
    if (offset < REGION_SIZE)
        slab = slab_lookup(address);
    if (!slab || (const char *)address < slab->base)
        return NULL;
    if (HARDENED)
        return hardened_sample(slab);
    if (!slab_is_sampled(slab))
        return NULL;
    unsigned index = slab_index_at(slab, address);
    return index < slab->blocks ? ATOMIC_LOAD_ACQUIRE(slab_sample(slab, index)) : NULL;
}

void address_describe_neighbours(struct text *text, const void *address)
{
    const struct region *region = page_map_lookup(address);
    if (!region || region->kind != REGION_SUPERSLAB)
        return;
    const struct slab *slab = slab_lookup(address);
    if (!slab || (const char *)address < slab->base)
        return;
    unsigned index = slab_index_at(slab, address);
    if (index > 0 && index <= slab->blocks) {
        text_string(text, "  before it: ");
        print_use(text, slab, index - 1);
        text_char(text, '\n');
    }
    if (index + 1 < slab->blocks) {
        text_string(text, "  behind it: ");
        print_use(text, slab, index + 1);
        text_char(text, '\n');
    }
}
