/* observe/descriptor: who knows nothing but the descriptor finds what the walkers find. */
#include "unit.h"

#include "map/metadata.h"
#include "report/descriptor.h"
#include "slab/shard.h"
#include "span/big.h"
#include "thread/registry.h"
#include "trace/sample.h"

#include "api/alloc.h"

enum {
#define ADDRESS(object) AT_##object,
#define MEASURED(object) AT_##object,
#define CALL(function) AT_##function,
#define NUMBER(constant)
#define SIZE(type)
#define FIELD(type, member)
#define TAIL(type, member)
#include "report/descriptor.def"
};

/* A row has the name of a function. */
#define sample_site row_of_sample_site

enum {
#define ADDRESS(object)
#define MEASURED(object)
#define CALL(function)
#define NUMBER(constant) NUMBER_##constant,
#define SIZE(type) SIZE_##type,
#define FIELD(type, member) type##_##member,
#define TAIL(type, member) type##_##member,
#include "report/descriptor.def"
};

#define NUMBER_OF(name) (descriptor.item[NUMBER_##name].number)
#define SIZE_OF(name) (descriptor.item[SIZE_##name].bytes)

static const char *at(unsigned address)
{
    return descriptor.address[address];
}

/* The number in a field, of its size. */
static uint64_t get(const char *object, unsigned field)
{
    uint64_t value = 0;
    assert_true(descriptor.item[field].bytes <= sizeof value);
    memcpy(&value, object + descriptor.item[field].number, descriptor.item[field].bytes);
    return value;
}

static const char *get_pointer(const char *object, unsigned field)
{
    return (const char *)(uintptr_t)get(object, field);
}

static const char *region_at(size_t unit)
{
    const char *const *root = (const char *const *)(const void *)at(AT_page_map_root);
    const char *leaf = root[unit >> NUMBER_OF(LEAF_BITS)];
    uintptr_t entry;
    if (!leaf)
        return NULL;
    size_t index = unit & ((1u << NUMBER_OF(LEAF_BITS)) - 1);
    memcpy(&entry, leaf + index * sizeof entry, sizeof entry);
    return (const char *)(entry & ~(uintptr_t)NUMBER_OF(ENTRY_SUPERSLAB));
}

/* What lies in the regions. */
struct found {
    size_t superslabs, used_units, slabs, free_blocks, bigs, big_bytes;
};

static void look_at_superslab(const char *superslab, struct found *found)
{
    uint32_t free_units = (uint32_t)get(superslab, superslab_free_units);
    const char *last = NULL, *slab;
    found->superslabs++;
    for (unsigned unit = 0; unit < NUMBER_OF(SUPERSLAB_UNITS); unit++) {
        size_t offset = descriptor.item[superslab_slab_of_unit].number + unit * sizeof slab;
        memcpy(&slab, superslab + offset, sizeof slab);
        found->used_units += !(free_units >> unit & 1);
        assert_true((slab == NULL) == (free_units >> unit & 1));
        if (slab && slab != last) {
            assert_ptr_equal(
                get_pointer(slab, slab_base),
                get_pointer(superslab, region_base) + ((size_t)unit << NUMBER_OF(UNIT_SHIFT)));
            found->slabs++;
            found->free_blocks += get(slab, slab_free_blocks);
        }
        last = slab;
    }
}

static struct found look(void)
{
    struct found found = {0};
    for (size_t unit = 0; unit < (size_t)1 << (ADDRESS_BITS - NUMBER_OF(REGION_SHIFT)); unit++) {
        if (!((const void *const *)(const void *)at(
                AT_page_map_root))[unit >> NUMBER_OF(LEAF_BITS)]) {
            unit |= ((size_t)1 << NUMBER_OF(LEAF_BITS)) - 1;
            continue;
        }
        const char *region = region_at(unit);
        if (!region)
            continue;
        if (get(region, region_kind) == NUMBER_OF(REGION_SUPERSLAB)) {
            look_at_superslab(region, &found);
        } else if (get(region, big_live)) {
            found.bigs++;
            found.big_bytes += get(region, big_mapped);
        }
    }
    return found;
}

static void its_head_tells_what_it_is(void **state)
{
    (void)state;
    assert_memory_equal(descriptor.magic, "hakmem-layout\r\n", 16);
    assert_ptr_equal(descriptor.self, &descriptor);
    assert_int_equal(descriptor.layout, DESCRIPTOR_LAYOUT);
    assert_int_equal(descriptor.addresses, ARRAY_LENGTH(descriptor.address));
    assert_int_equal(descriptor.items, ARRAY_LENGTH(descriptor.item));
    assert_int_equal(offsetof(struct descriptor, address), 48);
}

static void regions_are_those_of_the_tiers(void **state)
{
    (void)state;
    enum { BLOCKS = 5000 };
    static void *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = alloc((size_t)16 << i % 14);
    void *big = alloc(5 * MIB);
    struct found found = look();
    struct page_heap_stats pages = page_heap_stats();
    struct big_stats bigs = big_stats();
    size_t slabs = 0, free_blocks = 0;
    for (unsigned i = 0; i < shard_places(); i++) {
        slabs += bin_at(i)->slab_count;
        free_blocks += bin_at(i)->free_blocks;
    }
    assert_int_equal(found.superslabs, pages.superslabs);
    assert_int_equal(found.used_units * UNIT_PAGES, pages.used_pages);
    assert_int_equal(found.slabs, slabs);
    assert_int_equal(found.free_blocks, free_blocks);
    assert_int_equal(found.bigs, bigs.live_blocks);
    assert_int_equal(found.big_bytes, bigs.live_bytes);
    for (unsigned i = 0; i < BLOCKS; i++)
        release(blocks[i]);
    release(big);
}

static void records_are_in_the_chunks(void **state)
{
    (void)state;
    size_t bytes = 0;
    const char *chunk;
    memcpy(&chunk, at(AT_metadata_chunks), sizeof chunk);
    for (; chunk; chunk = get_pointer(chunk, metadata_chunk_next))
        bytes += get(chunk, metadata_chunk_bytes);
    assert_int_equal(bytes, metadata_bytes());
}

static void heaps_count_what_they_hand_out(void **state)
{
    (void)state;
    void *block = alloc(1000);
    unsigned size_class = size_class_of(1000), heaps = 0;
    heap_add_counts(size_class, size_class);
    uint64_t pops = 0, expected = heap_counts(size_class).pops;
    size_t left_at = descriptor.item[heap_front_pops_left].number + size_class * sizeof pops;
    size_t record_at =
        descriptor.item[heap_area_magazine].number + (size_class - 1) * (size_t)SIZE_OF(magazine);
    for (const char *heap = get_pointer(at(AT_registry), registry_all); heap;
         heap = get_pointer(heap, heap_next), heaps++) {
        const char *area = get_pointer(heap, heap_area);
        uint64_t left;
        memcpy(&left, area + left_at, sizeof left);
        pops += get(area + record_at, magazine_pops_at_due) - left;
    }
    for (const struct heap *heap = heap_first(); heap; heap = heap->next)
        heaps--;
    assert_int_equal(heaps, 0);
    assert_true(pops > 0);
    assert_int_equal(pops, expected);
    release(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_head_tells_what_it_is),
        cmocka_unit_test(regions_are_those_of_the_tiers),
        cmocka_unit_test(records_are_in_the_chunks),
        cmocka_unit_test(heaps_count_what_they_hand_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
