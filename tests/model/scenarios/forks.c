/* Fork while others work: the child, with what its copy of the memory holds, has to be able to
 * allocate, free, and fork again. By thread/fork.c. */
#include "api/alloc.h"
#include "base/pressure.h"
#include "checks/checks.h"
#include "engine/model.h"
#include "map/metadata.h"
#include "reclaim/engine.h"
#include "slab/shard.h"
#include "slab/sweep.h"
#include "slab/transfer.h"
#include "span/big.h"
#include "span/big_part.h"
#include "span/page_heap.h"
#include "thread/fork.h"
#include "thread/registry.h"

enum { SIZE = 8192, LARGE = 100 * 1024, BIG = LARGE_MAX + 1 };

static void *blocks[4];

static void *take(size_t size)
{
    void *block = alloc_slow(size);
    CHECK(block);
    *(volatile char *)block = 1;
    return block;
}

static void initialise(void)
{
    blocks[0] = take(SIZE);
    blocks[1] = take(LARGE);
    blocks[2] = take(BIG);
    fork_init();
}

/* Every structure that a lock guards is used once. */
static void use_everything(void)
{
    for (unsigned i = 0; i < 2; i++) {
        free_slow(take(SIZE));
        free_slow(take(LARGE));
        free_slow(take(BIG));
    }
    reclaim_everything();
    metadata_free(metadata_alloc(64), 64);
}

/* What the other threads hold: nobody else may get it, in the child either. */
static void *held[8];

static void hold(void **taken, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        held[i] = taken[i];
}

static void let_go(void)
{
    for (unsigned i = 0; i < ARRAY_LENGTH(held); i++)
        held[i] = NULL;
}

/* Takes all that it can get without more memory, and what big blocks need. */
static void take_what_is_free(void)
{
    enum { MANY = 40 };
    void *taken[MANY];
    unsigned got = bin_refill(0, size_class_of(SIZE), taken, MANY, 1, REFILL_USED);
    taken[got++] = take(SIZE);
    taken[got++] = take(LARGE);
    taken[got++] = take(BIG);
    for (unsigned i = 0; i < got; i++)
        for (unsigned k = 0; k < ARRAY_LENGTH(held); k++)
            CHECK(taken[i] != held[k]);
}

/* A bare clone: no handler runs. */
static void clone_child(void)
{
    model_fork();
    transfer_check_all();
    use_everything();
    take_what_is_free();
}

static void fork_child(void)
{
    fork_handlers.before();
    model_fork();
    fork_handlers.in_child();
    use_everything();
    take_what_is_free();
}

static void consistent(void)
{
    bin_check_all();
    transfer_check_all();
    page_heap_check();
    heap_check_pool();
    big_cache_check();
    big_cache_evict(SIZE_MAX);
    CHECK(big_stats().cached_bytes == 0);
    metadata_check();
    for (struct heap *heap = heap_first(); heap; heap = heap->next)
        heap_check(heap);
}

static void use_bin(void)
{
    void *taken[2];
    unsigned class = size_class_of(SIZE);
    unsigned got = bin_refill(0, class, taken, 2, 1, REFILL_MAP);
    hold(taken, got);
    let_go();
    bin_flush(0, class, taken, got);
}

/* A slab runs empty, is made anew, and is kept the next time. */
static void use_empties(void)
{
    void *taken[8];
    unsigned size_class = size_class_of(SIZE);
    for (int round = 0; round < 2; round++) {
        unsigned got = bin_refill(0, size_class, taken, ARRAY_LENGTH(taken), 1, REFILL_MAP);
        bin_flush(0, size_class, taken, got);
    }
    sweep_empties();
}

static void use_transfer(void)
{
    void *taken[2];
    unsigned class = size_class_of(SIZE), got = bin_refill(0, class, taken, 2, 1, REFILL_MAP);
    transfer_put(0, class, taken, got);
    hold(taken, bin_refill(0, class, taken, got, 1, REFILL_USED));
}

static void use_pages(void)
{
    unsigned two = size_class_of(2 * UNIT_SIZE), three = size_class_of(3 * UNIT_SIZE);
    void *block = NULL;
    bin_refill(0, three, &block, 1, 1, REFILL_MAP);
    hold(&block, 1);
    bool grown = bin_resize(slab_lookup(block), size_class_of(4 * UNIT_SIZE));
    CHECK(bin_resize(slab_lookup(block), two) && grown);
    let_go();
    bin_flush(0, two, &block, 1);
    page_heap_purge(SIZE_MAX);
}

static void use_big(void)
{
    void *block = big_alloc(0, BIG, 1, false);
    hold(&block, 1);
    let_go();
    big_free((struct big *)page_map_lookup(block), block, "free");
    big_cache_evict(SIZE_MAX);
}

static void use_heap(void)
{
    void *block = take(SIZE);
    hold(&block, 1);
    let_go();
    free_slow(block);
    model_exit_thread();
}

/* If the record were on the list before it knows the next one, this would make a cycle. */
static void use_records(void)
{
    void **record = metadata_alloc(64);
    *record = record;
    metadata_free(record, 64);
}

#define FORK_SCENARIO(id, text, other)                                                             \
    SCENARIO(forks_##id) = {                                                                       \
        .name = "forks_" #id,                                                                      \
        .about = "fork while " text,                                                               \
        .prepare = initialise,                                                                     \
        .thread = {clone_child, other},                                                            \
        .finish = consistent}

static char *with_rest;

static void initialise_with_rest(void)
{
    initialise();
    void *block = big_alloc(0, 3 * BIG, 1, false);
    big_free((struct big *)page_map_lookup(block), block, "free");
    with_rest = big_alloc(0, BIG, 1, false);
    CHECK(((struct big *)page_map_lookup(with_rest))->rest);
}

static void cut_rest(void)
{
    big_cache_evict(SIZE_MAX);
}

static void free_with_rest(void)
{
    big_free((struct big *)page_map_lookup(with_rest), with_rest, "free");
    consistent();
}

SCENARIO(forks_rests) = {
    .name = "forks_rests",
    .about = "fork while a rest is cut",
    .prepare = initialise_with_rest,
    .thread = {clone_child, cut_rest},
    .finish = free_with_rest};

FORK_SCENARIO(bins, "a bin is refilled from and flushed to", use_bin);
FORK_SCENARIO(empties, "empty slabs are kept and given up", use_empties);
FORK_SCENARIO(transfers, "a transfer cache is used", use_transfer);
FORK_SCENARIO(pages, "a large block is made, resized and purged", use_pages);
FORK_SCENARIO(bigs, "big blocks are made and evicted", use_big);
FORK_SCENARIO(heaps, "a thread begins and exits", use_heap);
FORK_SCENARIO(records, "records are made", use_records);

/* So that the next record needs a new chunk. */
static void initialise_and_use_up(void)
{
    enum { LONG = 4096 };
    initialise();
    while (metadata.end - metadata.cursor >= LONG)
        metadata_alloc(LONG);
}

static void use_chunk(void)
{
    metadata_alloc(4096);
    metadata_alloc(4096);
}

SCENARIO(forks_chunk) = {
    .name = "forks_chunk",
    .about = "fork while memory for records is mapped",
    .prepare = initialise_and_use_up,
    .thread = {clone_child, use_chunk},
    .finish = consistent};

SCENARIO(forks_two_others) = {
    .name = "forks_two_others",
    .about = "fork while two threads use the same bin",
    .prepare = initialise,
    .thread = {fork_child, use_bin, use_records},
    .finish = consistent};

/* The child's memory is used by its own child. */
static void fork_twice(void)
{
    model_fork();
    model_fork();
    use_everything();
    take_what_is_free();
}

SCENARIO(forks_twice) = {
    .name = "forks_twice",
    .about = "the child forks before it has put anything right",
    .prepare = initialise,
    .thread = {fork_twice, use_bin},
    .finish = consistent};

static void fork_child_briefly(void)
{
    fork_handlers.before();
    model_fork();
    fork_handlers.in_child();
    free_slow(take(SIZE));
}

static void call_first(void)
{
    take(SIZE);
}

/* The first call of another thread is under way, and its initialisation. */
SCENARIO(forks_first_call) = {
    .name = "forks_first_call",
    .about = "fork while another thread initialises the allocator",
    .prepare = fork_init,
    .thread = {fork_child_briefly, call_first},
    .finish = consistent,
    .preemptions_max = 1};

/* ---- A handler forks between two locks --------------------------------------------------------
 */

static unsigned places_left;

/* The child repairs all structures, since others held each lock, and goes on with the call. */
static void repair_all(void)
{
    if (places_left-- > 1)
        return;
    model_between_locks = NULL;
    heap_repair_registry();
    for (unsigned part = 0; part < big_cache_parts(); part++)
        big_cache_repair(part);
    for (unsigned part = 0; part < page_heap_parts(); part++)
        page_heap_repair(part);
    metadata_repair();
    bin_repair(size_class_of(SIZE));
}

/* All blocks of a slab, so that it begins and ends. */
static void use_slab(void)
{
    void *taken[8];
    unsigned class = size_class_of(SIZE), got = bin_refill(0, class, taken, 7, 1, REFILL_USED);
    got += bin_refill(0, class, taken + got, 8 - got, 1, REFILL_MAP);
    bin_flush(0, class, taken, got);
}

/* More than one superslab holds: a second one comes and goes. */
static void use_superslab(void)
{
    struct unit_run taken[3];
    for (unsigned i = 0; i < ARRAY_LENGTH(taken); i++)
        CHECK(page_heap_take(0, 16, 1, true, &taken[i]));
    for (unsigned i = 0; i < ARRAY_LENGTH(taken); i++)
        page_heap_put(taken[i].superslab, taken[i].run, 16 * UNIT_PAGES);
    page_heap_purge(SIZE_MAX);
}

/* At each place once. */
static void repair_within(void (*use)(void))
{
    bool repaired = true;
    for (unsigned place = 1; repaired; place++) {
        places_left = place;
        model_between_locks = repair_all;
        use();
        repaired = !model_between_locks;
        model_between_locks = NULL;
        consistent();
    }
}

static void repair_within_slab(void)
{
    repair_within(use_slab);
}

static void repair_within_pages(void)
{
    repair_within(use_superslab);
}

static void repair_within_big(void)
{
    repair_within(use_big);
}

#define BETWEEN_SCENARIO(id, text)                                                                 \
    SCENARIO(forks_within_##id) = {                                                                \
        .name = "forks_within_" #id,                                                               \
        .about = "a handler forks between two locks while " text ", which the child goes on with", \
        .prepare = initialise,                                                                     \
        .thread = {repair_within_##id},                                                            \
        .finish = consistent}

BETWEEN_SCENARIO(slab, "a slab is made and ended");
BETWEEN_SCENARIO(pages, "a superslab is mapped and unmapped");
BETWEEN_SCENARIO(big, "a big block is made and evicted");
