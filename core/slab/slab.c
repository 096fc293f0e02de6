/* See slab.h. */
#include "slab/slab.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/poison.h"
#include "base/policy.h"
#include "map/metadata.h"
#include "os/fatal.h"
#include "span/page_heap.h"

static size_t record_size(unsigned class)
{
    return sizeof(struct slab) + (size_classes[class].blocks + 63u) / 64 * sizeof(uint64_t);
}

static void publish(struct slab *slab, unsigned class, struct slab *value)
{
    unsigned unit = superslab_page_of(slab->base) / UNIT_PAGES;
    unsigned units = size_classes[slab->class].units;
    for (unsigned i = 0; i < units; i++)
        ATOMIC_STORE_RELEASE(&slab->superslab->slab_of_unit[unit + i], value);
    class_map_set(slab->base, units, class);
}

void slab_publish(const struct slab *slab)
{
    if (class_map_prepare(slab->superslab->region.base))
        class_map_set(slab->base, size_classes[slab->class].units, slab->class);
}

/* Bytes of address space in slabs of blocks of which every page is touched, since none is longer;
 * atomic relaxed, any thread. */
static size_t dense_bytes;

/* Page tables for so much fill what the second-level cache of a core holds. */
static const size_t huge_heap_min = 256 * MIB;

static void count_dense(unsigned class, size_t change)
{
    if (!size_class_is_long(class))
        ATOMIC_ADD_RELAXED(&dense_bytes, change);
}

/* What a slab of the class may map: a huge page only where its blocks use all of one. */
static enum growth growth_for(unsigned class)
{
    bool dense = !size_class_is_long(class) && ATOMIC_LOAD_RELAXED(&dense_bytes) >= huge_heap_min;
    return dense && POLICY(huge_pages) ? GROWTH_HUGE_PAGE : GROWTH_SMALL_PAGES;
}

struct slab *slab_create(unsigned class, unsigned shard, bool may_grow)
{
    struct page_run taken;
    struct slab *slab = metadata_alloc(record_size(class));
    if (!slab)
        return NULL;
    enum growth growth = may_grow ? growth_for(class) : GROWTH_NONE;
    if (!page_heap_take_units(size_classes[class].units, growth, &taken)) {
        metadata_free(slab, record_size(class));
        return NULL;
    }
    count_dense(class, size_classes[class].units * UNIT_SIZE);
    slab->base = superslab_address(taken.superslab, taken.run.first);
    slab->superslab = taken.superslab;
    slab->class = (uint8_t) class;
    slab->shard = (uint8_t)shard;
    slab->clean = taken.clean;
    slab->blocks = slab->free_blocks = size_classes[class].blocks;
    bitmap_set_range(slab->free, 0, slab->blocks);
    for (unsigned i = 0; HAKMEM_SANITIZE_ADDRESS && i < slab->blocks; i++)
        poison_block(slab->base + i * (size_t)size_classes[class].size, size_classes[class].size);
    publish(slab, class, slab);
    return slab;
}

void slab_destroy(struct slab *slab)
{
    ASSERT(slab->free_blocks == slab->blocks);
    unsigned class = slab->class;
    size_t touched = slab->watermark * (size_t)size_classes[class].size;
    struct run run = {superslab_page_of(slab->base), size_classes[class].units * UNIT_PAGES};
    struct superslab *superslab = slab->superslab;
    publish(slab, CLASS_NONE, NULL);
    count_dense(class, -(size_classes[class].units * UNIT_SIZE));
    metadata_free(slab, record_size(class));
    page_heap_put(superslab, run, (unsigned)((touched + PAGE_SIZE - 1) >> PAGE_SHIFT));
}

struct slab *slab_lookup(const void *address)
{
    struct region *region = page_map_lookup(address);
    if (!region || region->kind != REGION_SUPERSLAB)
        return NULL;
    struct superslab *superslab = (struct superslab *)region;
    return ATOMIC_LOAD_ACQUIRE(&superslab->slab_of_unit[superslab_page_of(address) / UNIT_PAGES]);
}

/* How many bits from the lowest one on are set, of a word in which one is. */
static unsigned run_length(uint64_t bits)
{
    uint64_t behind = ~(bits >> bits_lowest(bits));
    return behind ? bits_lowest(behind) : 64;
}

unsigned slab_take(struct slab *slab, void **blocks, unsigned count)
{
    size_t size = size_classes[slab->class].size;
    unsigned taken = 0, word = slab->first_word, end = 0;
    if (count > slab->free_blocks)
        count = slab->free_blocks;
    while (taken < count) {
        uint64_t bits = slab->free[word];
        /* Free blocks that lie one behind the other, at once. */
        while (bits && taken < count) {
            unsigned first = bits_lowest(bits);
            unsigned run = (unsigned)size_min(run_length(bits), count - taken);
            char *block = slab->base + (word * 64 + first) * size;
            for (unsigned i = 0; i < run; i++, block += size)
                blocks[taken + i] = block;
            bits &= ~bitmap_word_mask(0, first, run);
            taken += run;
            end = word * 64 + first + run;
        }
        slab->free[word] = bits;
        word += bits == 0;
    }
    unpoison_blocks(blocks, taken, size);
    slab->first_word = (uint16_t)word;
    slab->free_blocks -= (uint16_t)taken;
    slab->purged = 0;
    if (end > slab->watermark)
        slab->watermark = (uint16_t)end;
    return taken;
}

static _Noreturn SLOW_PATH void fatal_index(
    const struct slab *slab, const void *address, const char *call)
{
    size_t size = size_classes[slab->class].size;
    unsigned index = size_class_index(slab->class, (size_t)((const char *)address - slab->base));
    if ((uintptr_t)address % MIN_ALIGNMENT)
        fatal_pointer(call, DEFECT_MISALIGNED, address, NULL, 0);
    if (index < slab->blocks)
        fatal_pointer(call, DEFECT_INTERIOR, address, slab->base + index * size, size);
    fatal_pointer(call, DEFECT_FOREIGN, address, NULL, 0);
}

unsigned slab_index(const struct slab *slab, const void *address, const char *call)
{
    size_t offset = (size_t)((const char *)address - slab->base);
    unsigned index = size_class_index(slab->class, offset);
    if (UNLIKELY(!size_class_is_start(slab->class, index, offset)))
        fatal_index(slab, address, call);
    return index;
}

bool slab_are_starts(unsigned size_class, void *const *blocks, unsigned count)
{
    bool good = true;
    for (unsigned i = 0; i < count; i++)
        good &= size_class_starts_at(size_class, blocks[i]);
    return good;
}

/* How many of up to `most` blocks stand in a row: each `step` bytes behind the one before. */
static unsigned row_of(void *const *blocks, size_t most, ptrdiff_t step)
{
    unsigned row = 1;
    while (row < most && (char *)blocks[row] == (char *)blocks[row - 1] + step)
        row++;
    return row;
}

unsigned slab_put(struct slab *slab, void *const *blocks, unsigned count)
{
    const struct size_class layout = size_classes[slab->class];
    unsigned lowest = slab->first_word * 64u, word = 0, put = 0, row, row_max = 64;
    uint64_t bits = slab->free[0]; /* stays in a register while blocks of one word come */
    for (; put < count; put += row) {
        size_t index = size_class_exact_index(&layout, (size_t)blocks[put] - (size_t)slab->base);
        if (UNLIKELY(index >= layout.blocks))
            break;
        if (index / 64 != word) {
            slab->free[word] = bits;
            word = (unsigned)index / 64;
            bits = slab->free[word];
        }
        /* Those that were freed in the order of their addresses, or against it, at once. */
        bool down = put + 1 < count && blocks[put + 1] < blocks[put];
        unsigned bit = index % 64, room = down ? bit + 1 : 64 - bit;
        size_t most =
            size_min(size_min(count - put, row_max), size_min(room, layout.blocks - index));
        row = row_of(blocks + put, most, down ? -(ptrdiff_t)layout.size : (ptrdiff_t)layout.size);
        unsigned first = down ? bit + 1 - row : bit;
        uint64_t mask = bitmap_word_mask(0, first, row);
        if (UNLIKELY(bits & mask)) {
            /* One of them is free: finds out which. */
            if (row == 1)
                break;
            row_max = 1;
            row = 0;
            continue;
        }
        bits |= mask;
        lowest = (unsigned)size_min(lowest, word * 64 + first);
    }
    slab->free[word] = bits;
    poison_blocks(blocks, put, layout.size);
    slab->free_blocks += (uint16_t)put;
    slab->first_word = (uint16_t)(lowest / 64);
    return put;
}

void slab_refuse(const struct slab *slab, const void *block, const char *call)
{
    slab_index(slab, block, call);
    fatal_pointer(call, DEFECT_DOUBLE_FREE, block, NULL, 0);
}

void slab_repair(struct slab *slab)
{
    unsigned used = slab->blocks;
    while (used > 0 && bitmap_test(slab->free, used - 1))
        used--;
    slab->watermark = (uint16_t)size_max(slab->watermark, used);
    slab->free_blocks = (uint16_t)bitmap_count_range(slab->free, 0, slab->blocks);
    slab->first_word = 0;
    slab->purged = 0;
}

void slab_check(const struct slab *slab)
{
    ASSERT(slab->blocks == size_classes[slab->class].blocks);
    ASSERT(slab->free_blocks == bitmap_count_range(slab->free, 0, slab->blocks));
    ASSERT(slab->watermark <= slab->blocks);
    ASSERT(
        !slab->free_blocks ||
        bitmap_find(slab->free, 0, slab->blocks, true) >= slab->first_word * 64u);
    ASSERT(bitmap_find(slab->free, slab->watermark, slab->blocks, false) == slab->blocks);
    ASSERT(slab_lookup(slab->base) == slab);
    ASSERT(
        class_map.limit == 0 || class_map_get(slab->base) == slab->class ||
        class_map_get(slab->base) == CLASS_NONE);
}
