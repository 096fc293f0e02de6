/* Fork while others work: the child, with what its copy of the memory holds, has to be able to
 * allocate, free, and fork again. By thread/fork.c and the true lock. */
#include "api/alloc.h"
#include "engine/model.h"
#include "map/metadata.h"
#include "slab/bin.h"
#include "slab/depot.h"
#include "span/big.h"
#include "span/page_heap.h"
#include "span/span.h"
#include "thread/fork.h"
#include "thread/heap.h"

enum { SIZE = 8192, LARGE = 100 * 1024, BIG = 2 << 20 };

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
    depot_purge();
    metadata_free(metadata_alloc(64), 64);
}

static void fork_child(void)
{
    fork_handlers.before();
    model_fork();
    fork_handlers.in_child();
    use_everything();
}

static void fork_parent(void)
{
    fork_handlers.before();
    fork_handlers.in_parent();
}

static void consistent(void)
{
    bin_check_all();
    depot_check_all();
    page_heap_check();
    big_stats();
    for (struct heap *heap = heap_first(); heap; heap = heap->next)
        heap_check(heap);
}

static void use_bin(void)
{
    void *taken[2];
    unsigned class = size_class_of(SIZE);
    unsigned got = bin_refill(0, class, taken, 2, REFILL_MAP);
    bin_flush(0, class, taken, got);
}

static void use_depot(void)
{
    void *taken[2];
    unsigned class = size_class_of(SIZE), got = bin_refill(0, class, taken, 2, REFILL_MAP);
    depot_put(class, taken, got);
    depot_take(class, taken, got);
}

static void use_pages(void)
{
    void *block = span_alloc(LARGE, 1, false);
    span_free((struct superslab *)page_map_lookup(block), block, "free");
    page_heap_purge(SIZE_MAX);
}

static void use_big(void)
{
    void *block = big_alloc(BIG, 1, false);
    big_free((struct big *)page_map_lookup(block), block, "free");
    big_cache_evict(SIZE_MAX);
}

static void use_heap(void)
{
    free_slow(take(SIZE));
    model_exit_thread();
}

static void use_records(void)
{
    metadata_free(metadata_alloc(64), 64);
}

#define FORK_SCENARIO(id, text, other)                                                             \
    SCENARIO(forks_##id) = {                                                                       \
        .name = "forks_" #id,                                                                      \
        .about = "fork while " text,                                                               \
        .prepare = initialise,                                                                     \
        .thread = {fork_child, other},                                                             \
        .finish = consistent}

FORK_SCENARIO(bins, "a bin is refilled from and flushed to", use_bin);
FORK_SCENARIO(depots, "a depot is used", use_depot);
FORK_SCENARIO(pages, "spans are made and purged", use_pages);
FORK_SCENARIO(bigs, "big blocks are made and evicted", use_big);
FORK_SCENARIO(heaps, "a thread begins and exits", use_heap);
FORK_SCENARIO(records, "records are made", use_records);

SCENARIO(forks_two_others) = {
    .name = "forks_two_others",
    .about = "fork while two threads use the same bin",
    .prepare = initialise,
    .thread = {fork_child, use_bin, use_records},
    .finish = consistent};

SCENARIO(forks_parent) = {
    .name = "forks_parent",
    .about = "in the parent the others go on",
    .prepare = initialise,
    .thread = {fork_parent, use_bin, use_bin},
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
    .finish = consistent};
