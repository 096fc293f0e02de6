/* See slab.h. */
#include "slab/slab.h"

#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/poison.h"
#include "map/metadata.h"
#include "os/fatal.h"
#include "os/os.h"
#include "span/page_heap.h"

uint8_t slab_samples_shard;

static size_t record_size(unsigned size_class, unsigned shard)
{
    unsigned blocks = slab_blocks_of(size_class);
    size_t more = HARDENED                       ? hardened_record_bytes(blocks)
                  : slab_shard_is_sampled(shard) ? blocks * sizeof(void *)
                                                 : 0;
    return sizeof(struct slab) + (blocks + 63u) / 64 * sizeof(uint64_t) + more;
}

/* The records of slabs that start at units of that alignment; NULL: no memory. */
static char *records_of(struct superslab *superslab, unsigned alignment)
{
    if (alignment == SUPERSLAB_ALIGNMENTS - 1)
        return superslab->slab_records[0];
    char **place = &superslab->more_slab_records[alignment], *records = ATOMIC_LOAD_ACQUIRE(place);
    if (records)
        return records;
    char *made = metadata_alloc(superslab_records_size(alignment));
    if (!made || __atomic_compare_exchange_n(
                     place, &records, made, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        return made;
    metadata_free(made, superslab_records_size(alignment));
    return records;
}

/* A slab of few blocks has its record with its superslab: such slabs come and go most often, and
 * metadata has one lock for all threads. NULL: no memory. */
static struct slab *record_alloc(unsigned size_class, unsigned shard, const struct unit_run *taken)
{
    size_t size = record_size(size_class, shard);
    if (size > SLAB_RECORD_SIZE)
        return metadata_alloc(size);
    unsigned unit = taken->run.first, alignment = superslab_alignment(unit);
    unsigned distance = alignment == SUPERSLAB_ALIGNMENTS - 1 ? alignment : alignment + 1;
    char *records = records_of(taken->superslab, alignment);
    size_t index = unit >> distance;
    return records ? memset(records + index * SLAB_RECORD_SIZE, 0, size) : NULL;
}

/* To be called while the caller still has the slab's units. */
static void record_free(struct slab *slab)
{
    slab_take_clean(slab, UINT64_MAX);
    size_t size = record_size(slab->size_class, slab->shard);
    if (size > SLAB_RECORD_SIZE)
        metadata_free(slab, size);
}

/* The part of the page heap that a shard's slabs come from. */
static unsigned part_of_shard(unsigned shard)
{
    return UNLIKELY(slab_shard_is_sampled(shard)) ? 0 : shard;
}

/* Enters `value` as the slab of its units from `first` up to `end`. */
static void set_units(struct slab *slab, unsigned first, unsigned end, struct slab *value)
{
    unsigned unit = superslab_unit_of(slab->base);
    for (unsigned i = first; i < end; i++)
        ATOMIC_STORE_RELEASE(&slab->superslab->slab_of_unit[unit + i], value);
}

static void publish(struct slab *slab, unsigned size_class, struct slab *value)
{
    unsigned units = size_classes[slab->size_class].units;
    set_units(slab, 0, units, value);
    if (!HARDENED && !size_class_is_long(slab->size_class) && !slab_is_sampled(slab))
        class_map_set(slab->base, units, size_class);
}

void slab_publish(const struct slab *slab)
{
    if (class_map_prepare(slab->superslab->region.base))
        class_map_set(slab->base, size_classes[slab->size_class].units, slab->size_class);
}

/* A slab of the class; in the hardened library the caller opens it. */
static struct slab *make_slab(
    unsigned size_class, unsigned shard, unsigned alignment, bool may_grow)
{
    struct unit_run taken;
    unsigned units = size_classes[size_class].units;
    if (!page_heap_take(part_of_shard(shard), units, alignment, may_grow, &taken))
        return NULL;
    struct slab *slab = record_alloc(size_class, shard, &taken);
    if (!slab) {
        page_heap_put(taken.superslab, taken.run, 0);
        return NULL;
    }
    slab->base = superslab_address(taken.superslab, taken.run.first);
    slab->superslab = taken.superslab;
    slab->size_class = (uint8_t)size_class;
    slab->shard = (uint8_t)shard;
    slab->blocks = slab->free_blocks = (uint16_t)slab_blocks_of(size_class);
    bitmap_set_range(slab->free, 0, slab->blocks);
    slab->clean = taken.dirty_pages == 0;
    slab_count_clean(slab, &taken);
    return slab;
}

/* If the system refuses to open a slab, tries others; the refused ones go back at the end, or they
 * would be taken again. A function of its own, since it needs much stack. */
static SLOW_PATH struct slab *create_open(
    unsigned size_class, unsigned shard, unsigned alignment, bool may_grow)
{
    struct slab *refused[SUPERSLAB_UNITS + 1], *slab = NULL;
    unsigned count = 0;
    while (count < ARRAY_LENGTH(refused) &&
           (slab = make_slab(size_class, shard, alignment, may_grow)) != NULL && HARDENED &&
           !hardened_open_slab(slab)) {
        refused[count++] = slab;
        slab = NULL;
    }
    while (count) {
        struct slab *closed = refused[--count];
        struct run run = {superslab_unit_of(closed->base), size_classes[size_class].units};
        struct superslab *superslab = closed->superslab;
        record_free(closed);
        page_heap_put(superslab, run, 0);
    }
    return slab;
}

struct slab *slab_create(unsigned size_class, unsigned shard, unsigned alignment, bool may_grow)
{
    const struct size_class *layout = &size_classes[size_class];
    alignment = (unsigned)size_max(alignment, layout->alignment);
    struct slab *slab = HARDENED ? create_open(size_class, shard, alignment, may_grow)
                                 : make_slab(size_class, shard, alignment, may_grow);
    if (!slab)
        return NULL;
    for (unsigned i = 0; HAKMEM_SANITIZE_ADDRESS && i < slab->blocks; i++)
        poison_block(slab_block(slab, i), layout->size);
    publish(slab, size_class, slab);
    return slab;
}

void slab_destroy(struct slab *slab)
{
    ASSERT(slab->free_blocks == slab->blocks);
    const struct size_class *layout = &size_classes[slab->size_class];
    size_t touched = slab->watermark * (size_t)layout->size;
    struct run run = {superslab_unit_of(slab->base), layout->units};
    struct superslab *superslab = slab->superslab;
    publish(slab, CLASS_NONE, NULL);
    if (hardened_close_slab(slab))
        touched = 0;
    for (unsigned i = 0; i < slab->watermark && size_class_is_long(slab->size_class); i++)
        ATOMIC_STORE_RELAXED(superslab_state(superslab, slab_block(slab, i)), BLOCK_UNUSED);
    record_free(slab);
    page_heap_put(superslab, run, (unsigned)((touched + PAGE_SIZE - 1) >> PAGE_SHIFT));
}

bool slab_resize(struct slab *slab, unsigned size_class)
{
    ASSERT(slab->blocks == 1 && slab->free_blocks == 0 && size_classes[size_class].blocks == 1);
    unsigned before = size_classes[slab->size_class].units, after = size_classes[size_class].units;
    unsigned unit = superslab_unit_of(slab->base);
    if (after > before) {
        struct run more = {unit + before, after - before};
        if (!page_heap_take_at(slab->superslab, more))
            return false;
        set_units(slab, before, after, slab);
    }
    slab->size_class = (uint8_t)size_class;
    if (slab_is_sampled(slab))
        superslab_sample_block(slab->base);
    else
        superslab_start_block(slab->base, size_class);
    if (after < before) {
        struct run rest = {unit + after, before - after};
        set_units(slab, after, before, NULL);
        page_heap_put(slab->superslab, rest, rest.units * UNIT_PAGES);
    }
    return true;
}

size_t slab_grain(const struct slab *slab)
{
    size_t grain = size_max(PAGE_SIZE, os_page_size());
    return size_max(grain, size_classes[slab->size_class].units * UNIT_SIZE / 64);
}

struct slab *slab_lookup(const void *address)
{
    return slab_find(address);
}

/* How many bits are set in a row from the lowest set one on; there is one. */
static unsigned run_length(uint64_t bits)
{
    uint64_t behind = ~(bits >> bits_lowest(bits));
    return behind ? bits_lowest(behind) : 64;
}

unsigned slab_take(struct slab *slab, void **blocks, unsigned count)
{
    if (HARDENED)
        return hardened_take(slab, blocks, count);
    size_t size = size_classes[slab->size_class].size;
    unsigned taken = 0, word = slab->first_word, end = 0;
    if (count > slab->free_blocks)
        count = slab->free_blocks;
    while (taken < count) {
        uint64_t bits = slab->free[word];
        /* Takes runs of free blocks at once. */
        while (bits && taken < count) {
            unsigned first = bits_lowest(bits);
            unsigned run = (unsigned)size_min(run_length(bits), count - taken);
            char *block = slab->base + (word * 64 + first) * size;
            ASSERT(run);
            for (unsigned i = 1; i <= run; i++, block += size)
                blocks[count - taken - i] = block;
            bits &= ~bitmap_word_mask(0, first, run);
            slab_touch(slab, word * 64 + first, run);
            taken += run;
            end = word * 64 + first + run;
        }
        slab->free[word] = bits;
        word += bits == 0;
    }
    unpoison_blocks(blocks, taken, size);
    slab->first_word = (uint16_t)word;
    slab->free_blocks -= (uint16_t)taken;
    if (end > slab->watermark)
        slab->watermark = (uint16_t)end;
    return taken;
}

static size_t offset_in(const struct slab *slab, const void *address)
{
    const char *place = hardened_address(address);
    return (size_t)(place - slab->base);
}

unsigned slab_index_at(const struct slab *slab, const void *address)
{
    return size_class_index(slab->size_class, offset_in(slab, address));
}

static _Noreturn SLOW_PATH void fatal_index(
    const struct slab *slab, const void *address, const char *call)
{
    unsigned index = slab_index_at(slab, address);
    if ((uintptr_t)address % MIN_ALIGNMENT)
        fatal_pointer(call, DEFECT_MISALIGNED, address, NULL, 0);
    hardened_refuse(slab, address, call);
    if (index < slab->blocks)
        fatal_pointer(
            call, DEFECT_INTERIOR, address, slab_block(slab, index),
            size_classes[slab->size_class].size);
    fatal_pointer(call, DEFECT_FOREIGN, address, NULL, 0);
}

unsigned slab_index(const struct slab *slab, const void *address, const char *call)
{
    const struct size_class *layout = &size_classes[slab->size_class];
    size_t index = size_class_exact_index(layout, offset_in(slab, address));
    if (UNLIKELY(index >= slab->blocks))
        fatal_index(slab, address, call);
    return (unsigned)index;
}

bool slab_are_starts(unsigned size_class, void *const *blocks, unsigned count)
{
    bool good = true;
    for (unsigned i = 0; i < count; i++)
        good &= size_class_starts_at(size_class, blocks[i]);
    return good;
}

/* How many of up to `most` blocks are in a row: each `step` bytes behind the one before. */
static unsigned row_of(void *const *blocks, size_t most, ptrdiff_t step)
{
    char *next = (char *)blocks[0] + step;
    unsigned row = 1;
    for (; row < most && blocks[row] == next; next += step)
        row++;
    return row;
}

/* slab_put for one block. */
ALWAYS_INLINE unsigned put_one(struct slab *slab, const void *block)
{
    size_t index =
        size_class_exact_index(&size_classes[slab->size_class], (size_t)block - (size_t)slab->base);
    if (UNLIKELY(index >= slab->blocks || bitmap_test(slab->free, (unsigned)index)))
        return 0;
    bitmap_set(slab->free, (unsigned)index);
    poison_block(block, size_classes[slab->size_class].size);
    slab->free_blocks++;
    slab->first_word = (uint16_t)size_min(slab->first_word, index / 64);
    return 1;
}

unsigned slab_put(struct slab *slab, void *const *blocks, unsigned count)
{
    /* The next one is in another slab: the program frees in no order. */
    size_t bytes = size_classes[slab->size_class].units * UNIT_SIZE;
    if (count == 1 || (size_t)blocks[1] - (size_t)slab->base >= bytes)
        return put_one(slab, blocks[0]);
    const struct size_class layout = size_classes[slab->size_class];
    unsigned lowest = slab->first_word * 64u, word = 0, put = 0, row, row_max = 64;
    unsigned blocks_end = slab->blocks;
    uint64_t bits = slab->free[0]; /* stays in a register while blocks of one word come */
    for (; put < count; put += row) {
        size_t index = size_class_exact_index(&layout, (size_t)blocks[put] - (size_t)slab->base);
        if (UNLIKELY(index >= blocks_end))
            break;
        if (index / 64 != word) {
            slab->free[word] = bits;
            word = (unsigned)index / 64;
            bits = slab->free[word];
        }
        /* Puts blocks in ascending or descending order of addresses at once. */
        bool down = put + 1 < count && blocks[put + 1] < blocks[put];
        unsigned bit = index % 64, room = down ? bit + 1 : 64 - bit;
        size_t most = size_min(size_min(count - put, row_max), size_min(room, blocks_end - index));
        row = row_of(blocks + put, most, down ? -(ptrdiff_t)layout.size : (ptrdiff_t)layout.size);
        unsigned first = down ? bit + 1 - row : bit;
        uint64_t mask = bitmap_word_mask(0, first, row);
        if (UNLIKELY(bits & mask)) {
            /* One of them is free already: goes on one by one. */
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
    ASSERT(used > 0);
    while (used > 0 && bitmap_test(slab->free, used - 1))
        used--;
    slab->watermark = (uint16_t)size_max(slab->watermark, used);
    slab->free_blocks = (uint16_t)bitmap_count_range(slab->free, 0, slab->blocks);
    slab->first_word = 0;
    slab_take_clean(slab, UINT64_MAX);
}
