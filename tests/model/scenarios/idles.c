/* Idle heaps: others close and drain a heap while its owner hits its magazines, takes it back,
 * parks it, exits. A hit may stop between any two of its steps and go on when all is over. */
#include "api/alloc.h"
#include "base/atomic.h"
#include "base/pressure.h"
#include "checks/checks.h"
#include "engine/model.h"
#include "os/os.h"
#include "slab/shard.h"
#include "slab/transfer.h"
#include "thread/fork.h"
#include "thread/idle.h"
#include "thread/registry.h"

enum { SIZE = 1024, HELD = 3 };

static void *blocks[HELD], *spare;

static void touch(void *block)
{
    *(volatile char *)block = 1;
}

/* A heap with three blocks waits in the pool for the owner. */
static void pool_a_heap(void)
{
    for (int i = 0; i < HELD; i++)
        touch(blocks[i] = alloc_slow(SIZE));
    touch(spare = alloc_slow(SIZE));
    heap_flush(heap_of_thread(), SIZE_MAX);
    transfer_drain(SIZE_MAX);
    for (int i = 0; i < HELD; i++)
        free_slow(blocks[i]);
    heap_forget();
}

/* What the hit paths do, and what becomes of a miss. */
static void *take(void)
{
    void *block = alloc(SIZE);
    CHECK(block);
    touch(block);
    return block;
}

static void give(void *block)
{
    touch(block);
    release(block);
}

static void begin(void)
{
    heap_leave(heap_enter());
}

/* Uses what others drained: a block that the owner has, too, is a race. */
static void use_transfer(void)
{
    void *taken[HELD];
    unsigned size_class = size_class_for_shard(size_class_of(SIZE), 0);
    unsigned got = bin_refill(0, size_class, taken, HELD, 1, REFILL_USED);
    for (unsigned i = 0; i < got; i++)
        touch(taken[i]);
    transfer_put(0, size_class, taken, got);
}

static void purge(void)
{
    model_set_time(1000); /* long after one in vain, which would not wait for heaps to settle */
    idle_purge();
    use_transfer();
}

static void consistent(void)
{
    registry_flush_pool();
    bin_check_all();
    transfer_check_all();
    for (struct heap *heap = heap_first(); heap; heap = heap->next) {
        heap_check(heap);
        CHECK(!heap->gate);
    }
}

static void pop(void)
{
    begin();
    take();
}

static void pop_twice(void)
{
    begin();
    take();
    take();
}

static void pop_and_push(void)
{
    begin();
    give(take());
}

static void push_and_pop(void)
{
    begin();
    give(spare);
    take();
}

/* The last call parks the heap: nothing of it is under way. */
static void push_and_park(void)
{
    begin();
    give(take());
    pressure_arm();
    begin();
}

static void park_and_pop(void)
{
    push_and_park();
    take();
}

static void push_and_exit(void)
{
    begin();
    give(take());
    model_exit_thread();
}

#define IDLE_SCENARIO(id, text, most, ...)                                                         \
    SCENARIO(idles_##id) = {                                                                       \
        .name = "idles_" #id,                                                                      \
        .about = text,                                                                             \
        .prepare = pool_a_heap,                                                                    \
        .thread = {__VA_ARGS__},                                                                   \
        .preemptions_max = most,                                                                   \
        .finish = consistent}

IDLE_SCENARIO(pop, "a heap is drained while its owner takes a block", 2, pop, purge);
IDLE_SCENARIO(pops, "and another one", 2, pop_twice, purge);
IDLE_SCENARIO(push, "and while it takes one and gives it back", 2, pop_and_push, purge);
IDLE_SCENARIO(pushed, "or the other way round", 2, push_and_pop, purge);
IDLE_SCENARIO(park, "a heap is drained that its owner parks", 2, push_and_park, purge);
IDLE_SCENARIO(parked, "and takes back", 2, park_and_pop, purge);
IDLE_SCENARIO(exit, "a heap is drained while its owner exits", 2, push_and_exit, purge);

static void flush_pool(void)
{
    registry_flush_pool();
}

/* What is flushed is not drained any more, though it was closed when its owner left it. */
static void leave_and_flush(void)
{
    begin();
    give(take());
    heap_forget();
    flush_pool();
}

IDLE_SCENARIO(leave, "and while its owner leaves it to the pool", 2, leave_and_flush, purge);

IDLE_SCENARIO(pool, "a heap in the pool is left to the pool", 2, purge, flush_pool);

static void keep_a_heap(void)
{
    pool_a_heap();
    begin();
}

SCENARIO(idles_two) = {
    .name = "idles_two",
    .about = "two threads drain the same heap",
    .prepare = keep_a_heap,
    .thread = {purge, purge},
    .finish = consistent,
    .preemptions_max = 1};

/* Ticks that come too soon after each other leave a heap alone. */
static void tick(void)
{
    idle_look();
    while (idle_step())
        continue;
}

static void ticks(void)
{
    tick();
    tick();
    use_transfer();
}

IDLE_SCENARIO(ticks, "ticks of the purge close a heap, and drain it later", 2, pop_twice, ticks);

/* Slow paths of two threads see that a tick is due; one has it, both may do its work. */
static void come_by(void)
{
    model_set_time(1000);
    reclaim_tick(1000);
}

IDLE_SCENARIO(come_by, "two threads come by a tick", 2, come_by, come_by);

static void come_by_and_pop(void)
{
    begin();
    come_by();
    take();
}

IDLE_SCENARIO(come_by_and_pop, "and go on with their work", 2, come_by_and_pop, come_by);

static bool is_closed;

/* The child of the owner goes on with a heap in whose gate another thread was. */
static void close_and_fork(void)
{
    begin();
    tick();
    os_sleep_ms(1);
    ATOMIC_STORE_RELAXED(&is_closed, true);
    fork_handlers.before();
    model_fork();
    fork_handlers.in_child();
    struct heap *heap = heap_enter();
    heap_flush(heap, SIZE_MAX);
    heap_leave(heap);
}

/* Not more than that: fork may come between any two stores of a closing. */
static void drain_if_closed(void)
{
    model_set_time(9);
    if (ATOMIC_LOAD_RELAXED(&is_closed))
        tick();
}

static void pool_a_heap_and_handlers(void)
{
    pool_a_heap();
    fork_init();
}

SCENARIO(idles_fork) = {
    .name = "idles_fork",
    .about = "the owner of a heap forks while it is drained",
    .prepare = pool_a_heap_and_handlers,
    .thread = {close_and_fork, drain_if_closed},
    .finish = consistent,
    .preemptions_max = 2};
