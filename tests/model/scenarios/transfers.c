/* Transfer caches: puts, takes, looks, ticks and drains at the same time. The class is one with
 * eight blocks a slab. */
#include "checks/checks.h"
#include "engine/model.h"
#include "slab/shard.h"
#include "slab/transfer.h"
#include "span/page_heap.h"

enum { SIZE = 8192, SLAB_BLOCKS = 8 };

static void *blocks[SLAB_BLOCKS];

static unsigned size_class(void)
{
    return size_class_of(SIZE);
}

/* The block is this thread's alone: a second owner is a data race. */
static void use(void *block)
{
    CHECK(block);
    *(volatile char *)block = 1;
}

static void refill(void **taken, unsigned count)
{
    unsigned got = bin_refill(0, size_class(), taken, count, 1, REFILL_MAP);
    CHECK(got > 0);
    for (unsigned i = 0; i < got; i++)
        use(taken[i]);
}

static void one_slab(void)
{
    CHECK(page_heap_init());
    shard_init(1);
    refill(blocks, SLAB_BLOCKS);
}

static void refill_2(void)
{
    void *taken[2];
    refill(taken, 2);
}

static void consistent(void)
{
    bin_check_all();
    transfer_check_all();
    page_heap_check();
    /* No block is where no drain looks. */
    transfer_drain(SIZE_MAX);
    CHECK(transfer_blocks(size_class()) == 0);
}

static void put(unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        use(blocks[i]);
    CHECK(transfer_put(0, size_class(), blocks + first, count) == count);
}

static void some_in_transfer(void)
{
    one_slab();
    put(0, 3);
}

static void put_3(void)
{
    put(3, 2);
}

static void take_2(void)
{
    void *taken[2];
    unsigned got = bin_refill(0, size_class(), taken, 2, 1, REFILL_USED);
    for (unsigned i = 0; i < got; i++)
        use(taken[i]);
}

static void put_0(void)
{
    put(0, 2);
}

SCENARIO(transfers_grow) = {
    .name = "transfers_grow",
    .about = "two threads put into a transfer cache that has no room yet, one takes",
    .prepare = one_slab,
    .thread = {put_0, put_3, take_2},
    .finish = consistent};

static void drain(void)
{
    transfer_drain(SIZE_MAX);
}

SCENARIO(transfers_drain) = {
    .name = "transfers_drain",
    .about = "put, take and drain",
    .prepare = some_in_transfer,
    .thread = {put_3, take_2, drain},
    .finish = consistent};

static void look(void)
{
    for (unsigned cache = 0; cache < shard_places(); cache++)
        if (transfer_may(cache))
            transfer_look(cache);
}

static void step(void)
{
    for (unsigned cache = 0; cache < shard_places(); cache++)
        if (transfer_may(cache))
            transfer_step(cache);
}

static void tick_and_step(void)
{
    look();
    step();
}

static void two_ticks(void)
{
    look();
    look();
    step();
}

SCENARIO(transfers_tick) = {
    .name = "transfers_tick",
    .about = "two threads tick and drain, one takes",
    .prepare = some_in_transfer,
    .thread = {tick_and_step, two_ticks, take_2},
    .finish = consistent,
    .preemptions_max = 3};

static void look_into_transfer(void)
{
    CHECK(!transfer_holds(size_class(), blocks[7]));
}

SCENARIO(transfers_look) = {
    .name = "transfers_look",
    .about = "a look into a transfer cache while others put and take",
    .prepare = some_in_transfer,
    .thread = {put_3, take_2, look_into_transfer},
    .finish = consistent};

static void free_remote(void)
{
    put(5, 2);
    drain();
}

SCENARIO(transfers_remote) = {
    .name = "transfers_remote",
    .about = "a block goes from one thread to another by the transfer cache",
    .prepare = one_slab,
    .thread = {free_remote, take_2, refill_2},
    .finish = consistent};
