/* The states of long blocks, by the hit paths: blocks that one thread gets and another one frees,
 * heaps that are drained in the middle of a hit, a pointer that is freed once more while its slab
 * ends, fork. */
#include "api/alloc.h"
#include "base/atomic.h"
#include "base/pressure.h"
#include "checks/checks.h"
#include "engine/model.h"
#include "reclaim/engine.h"
#include "slab/shard.h"
#include "slab/transfer.h"
#include "span/page_heap.h"
#include "thread/fork.h"
#include "thread/idle.h"
#include "thread/registry.h"

enum { SIZE = 20480, SLAB_BLOCKS = 3, OTHER_SIZE = 8192 };

static void *blocks[SLAB_BLOCKS];

static void *mailbox; /* release on store pairs with acquire on load, as a program has to */

static bool is_live(const void *block)
{
    const uint8_t *state = superslab_find_state(block);
    size_t size_class = state ? superslab_live_class(state, block) : CLASS_NONE;
    CHECK(!size_class || size_class == slab_lookup(block)->size_class);
    return size_class;
}

static void *take(void)
{
    void *block = alloc(SIZE);
    CHECK(block && is_live(block));
    *(volatile char *)block = 1;
    return block;
}

static void give(void *block)
{
    *(volatile char *)block = 1;
    CHECK(is_live(block));
    release(block);
}

static void begin(void)
{
    heap_leave(heap_enter());
}

/* No block that is free is live: the walkers of slabs and magazines look. */
static void consistent(void)
{
    registry_flush_pool();
    bin_check_all();
    transfer_check_all();
    page_heap_check();
    for (struct heap *heap = heap_first(); heap; heap = heap->next)
        heap_check(heap);
}

/* ---- Two owners, one after the other ----------------------------------------------------------
 */

static void begin_and_take(void)
{
    for (unsigned i = 0; i < SLAB_BLOCKS; i++)
        blocks[i] = take();
}

static void all_in_use(void)
{
    begin_and_take();
    heap_forget();
}

static void take_and_send(void)
{
    begin();
    give(blocks[0]);
    ATOMIC_STORE_RELEASE(&mailbox, take());
    give(take());
}

static void receive_and_give(void)
{
    begin();
    give(blocks[1]);
    void *block = ATOMIC_LOAD_ACQUIRE(&mailbox);
    if (block)
        give(block);
    give(take());
}

SCENARIO(states_sent) = {
    .name = "states_sent",
    .about = "a long block is freed by another thread, which takes one of the slab itself",
    .prepare = all_in_use,
    .thread = {take_and_send, receive_and_give},
    .finish = consistent,
    .preemptions_max = 3};

/* ---- Drained heaps ----------------------------------------------------------------------------
 */

/* A heap with two blocks waits in the pool, and a third one is in use. */
static void pool_a_heap(void)
{
    begin_and_take();
    heap_flush(heap_of_thread(), SIZE_MAX);
    transfer_drain(SIZE_MAX);
    for (unsigned i = 0; i + 1 < SLAB_BLOCKS; i++)
        give(blocks[i]);
    heap_forget();
}

static void pop_and_push(void)
{
    begin();
    give(take());
    give(blocks[SLAB_BLOCKS - 1]);
}

/* Uses what others drained: a block that its owner has, too, would be live, or become so. */
static void purge_and_use(void)
{
    void *taken[SLAB_BLOCKS];
    unsigned size_class = size_class_of(SIZE);
    idle_purge();
    unsigned got = bin_refill(0, size_class, taken, SLAB_BLOCKS, 1, REFILL_USED);
    for (unsigned i = 0; i < got; i++) {
        *(volatile char *)taken[i] = 1;
        CHECK(!is_live(taken[i]));
        superslab_start_block(taken[i], size_class);
        CHECK(is_live(taken[i]));
        superslab_end_block(taken[i]);
    }
    transfer_put(0, size_class, taken, got);
}

SCENARIO(states_drained) = {
    .name = "states_drained",
    .about = "a heap is drained while its owner takes and frees long blocks",
    .prepare = pool_a_heap,
    .thread = {pop_and_push, purge_and_use},
    .finish = consistent,
    .preemptions_max = 2};

/* ---- The end of a slab ------------------------------------------------------------------------
 */

/* One block of the slab is in use. */
static void one_in_use(void)
{
    begin_and_take();
    for (unsigned i = 1; i < SLAB_BLOCKS; i++)
        give(blocks[i]);
    heap_flush(heap_of_thread(), SIZE_MAX);
    reclaim_everything();
    heap_forget();
}

/* Its units serve another class, of which a block starts where a stale one did not. */
static void end_and_take_other(void)
{
    begin();
    give(blocks[0]);
    struct heap *heap = heap_enter();
    heap_flush(heap, SIZE_MAX);
    transfer_drain(SIZE_MAX);
    heap_leave(heap);
    void *other = alloc(OTHER_SIZE);
    CHECK(other && is_live(other));
    *(volatile char *)other = 1;
    release(other);
}

static void free_stale(void)
{
    begin();
    CHECK(!magazine_push_long(thread_heap, blocks[1]));
    CHECK(!superslab_live_class(superslab_find_state(blocks[1]), blocks[1]));
}

SCENARIO(states_stale) = {
    .name = "states_stale",
    .about = "a block is freed once more while its slab ends and its units serve others",
    .prepare = one_in_use,
    .thread = {end_and_take_other, free_stale},
    .finish = consistent,
    .preemptions_max = 3};

/* ---- Fork -------------------------------------------------------------------------------------
 */

static void begin_and_handlers(void)
{
    all_in_use();
    fork_init();
}

/* What the vanished thread had in its hands is nobody's; all else can be taken and freed. */
static void fork_and_use_all(void)
{
    void *taken[SLAB_BLOCKS + 1];
    begin();
    model_fork();
    give(blocks[0]);
    for (unsigned i = 0; i < ARRAY_LENGTH(taken); i++)
        taken[i] = take();
    for (unsigned i = 0; i < ARRAY_LENGTH(taken); i++)
        give(taken[i]);
    struct heap *heap = heap_enter();
    heap_flush(heap, SIZE_MAX);
    heap_leave(heap);
    reclaim_everything();
}

static void take_and_give(void)
{
    begin();
    give(blocks[1]);
    give(take());
    model_exit_thread();
}

SCENARIO(states_fork) = {
    .name = "states_fork",
    .about = "fork while a thread takes and frees long blocks, and ends",
    .prepare = begin_and_handlers,
    .thread = {fork_and_use_all, take_and_give},
    .finish = consistent,
    .preemptions_max = 2};

/* The one block of a slab grows and shrinks where it is. */
static void resize(void)
{
    struct heap *heap = heap_enter();
    void *block = blocks[0];
    CHECK(heap_resize(heap, slab_lookup(block), size_class_of(4 * UNIT_SIZE)) && is_live(block));
    CHECK(heap_resize(heap, slab_lookup(block), size_class_of(2 * UNIT_SIZE)) && is_live(block));
    heap_leave(heap);
    release(block);
    heap = heap_enter();
    heap_flush(heap, SIZE_MAX);
    heap_leave(heap);
}

static void take_single(void)
{
    blocks[0] = alloc(3 * UNIT_SIZE);
    CHECK(blocks[0]);
    *(volatile char *)blocks[0] = 1;
    heap_forget();
    fork_init();
}

static void fork_and_take(void)
{
    begin();
    model_fork();
    void *block = alloc(2 * UNIT_SIZE);
    CHECK(is_live(block));
    *(volatile char *)block = 1;
    release(block);
    reclaim_everything();
}

SCENARIO(states_fork_resize) = {
    .name = "states_fork_resize",
    .about = "fork while a long block changes its class where it is",
    .prepare = take_single,
    .thread = {fork_and_take, resize},
    .finish = consistent,
    .preemptions_max = 2};
