/* Thread heaps: the first call ever, thread exit, adoption, and blocks that outlive their thread;
 * by the slow paths of malloc and free themselves. */
#include "api/alloc.h"
#include "base/atomic.h"
#include "checks/checks.h"
#include "engine/model.h"
#include "slab/shard.h"
#include "span/page_heap.h"
#include "thread/registry.h"

enum { SIZE = 8192 };

static void *mailbox; /* release on store pairs with acquire on load, as a program has to */

static void *take(void)
{
    void *block = alloc_slow(SIZE);
    CHECK(block);
    *(volatile char *)block = 1;
    return block;
}

static void give(void *block)
{
    *(volatile char *)block = 1;
    free_slow(block);
}

static void use_one(void)
{
    give(take());
}

/* All structures are sound, and heaps that nobody owns hold no blocks. */
static void consistent(void)
{
    registry_flush_pool();
    bin_check_all();
    transfer_check_all();
    page_heap_check();
    for (struct heap *heap = heap_first(); heap; heap = heap->next) {
        heap_check(heap);
        for (unsigned size_class = 1; size_class < CLASS_COUNT && !heap_in_use(heap); size_class++)
            CHECK(heap_cached_blocks(heap, size_class) == 0);
    }
}

/* ---- The first call ---------------------------------------------------------------------------
 */

static void enter(void)
{
    struct heap *heap = heap_enter();
    CHECK(heap && heap_in_use(heap) && heap == heap_of_thread());
    CHECK(heap->area->front.classes == class_map_newest()->classes);
    heap_leave(heap);
}

SCENARIO(heaps_once) = {
    .name = "heaps_once",
    .about = "the first call ever, by two threads at once",
    .thread = {enter, enter},
    .finish = consistent,
    .preemptions_max = 3};

static void fail_in_the_middle(void)
{
    model_fail_protect(1);
}

static void try_to_enter(void)
{
    struct heap *heap = heap_enter();
    if (heap)
        heap_leave(heap);
}

SCENARIO(heaps_once_more) = {
    .name = "heaps_once_more",
    .about = "the first call ever fails half way, and another thread tries again",
    .prepare = fail_in_the_middle,
    .thread = {try_to_enter, try_to_enter},
    .finish = consistent};

/* ---- Exit and adoption ------------------------------------------------------------------------
 */

static void initialise(void)
{
    use_one();
    model_exit_thread();
}

/* Three heaps in the pool, so that nobody has to make one. */
static void fill_pool(void)
{
    struct heap *heaps[3];
    initialise();
    for (unsigned i = 0; i < ARRAY_LENGTH(heaps); i++) {
        heaps[i] = registry_adopt();
        CHECK(heaps[i] && (i == 0 || heaps[i] != heaps[i - 1]));
    }
    for (unsigned i = 0; i < ARRAY_LENGTH(heaps); i++)
        registry_give_back(heaps[i]);
}

static void use_and_exit(void)
{
    use_one();
    model_exit_thread();
}

SCENARIO(heaps_exit) = {
    .name = "heaps_exit",
    .about = "a thread exits while another begins",
    .prepare = initialise,
    .thread = {use_and_exit, use_one},
    .finish = consistent,
    .preemptions_max = 3};

static void enter_and_exit(void)
{
    enter();
    model_exit_thread();
}

SCENARIO(heaps_pool) = {
    .name = "heaps_pool",
    .about = "three threads take heaps from the pool and give them back",
    .prepare = fill_pool,
    .thread = {enter_and_exit, enter_and_exit, enter_and_exit},
    .finish = consistent,
    .preemptions_max = 2};

static void use_exit_and_look(void)
{
    use_and_exit();
    heap_pool_caches(1, NULL);
}

static void flush_pool(void)
{
    registry_flush_pool();
}

SCENARIO(heaps_flush_pooled) = {
    .name = "heaps_flush_pooled",
    .about = "heaps in the pool are emptied while threads take them and give them back",
    .prepare = initialise,
    .thread = {use_and_exit, flush_pool},
    .finish = consistent,
    .preemptions_max = 2};

SCENARIO(heaps_search_pool) = {
    .name = "heaps_search_pool",
    .about = "a block is looked for in heaps of the pool while another thread empties them",
    .prepare = initialise,
    .thread = {use_exit_and_look, flush_pool},
    .finish = consistent,
    .preemptions_max = 2};

/* The only heap belongs to a thread that is gone and never gave it back. */
static void leave_heap_behind(void)
{
    enum { GONE = 999 };
    use_one();
    heap_of_thread()->owner = (uint64_t)identity_process_number() << 32 | GONE;
}

SCENARIO(heaps_reclaim) = {
    .name = "heaps_reclaim",
    .about = "two threads find the heap of one that is gone",
    .prepare = leave_heap_behind,
    .thread = {enter, enter},
    .finish = consistent};

SCENARIO(heaps_suspects) = {
    .name = "heaps_suspects",
    .about = "threads look for dead owners where others have just looked",
    .prepare = use_one,
    .thread = {enter, enter},
    .preemptions_max = 2};

/* ---- Heaps of a parent ------------------------------------------------------------------------
 */

static struct heap *own_heap;

/* Of the two heaps that are in use, the first has cached blocks, and no thread in the child. */
static void become_a_child(void)
{
    use_one();
    heap_forget();
    const struct heap *left = registry_adopt();
    CHECK(left && heap_cached_blocks(left, size_class_of(SIZE)) > 0);
    use_one();
    own_heap = heap_of_thread();
    CHECK(own_heap != left);
    identity_before_fork();
    identity_in_child();
    CHECK(!identity_is_local(own_heap->owner) && heap_in_use(own_heap));
    heap_leave(heap_enter());
    CHECK(identity_is_local(own_heap->owner) && heap_is_only_one());
}

static void enter_in_child(void)
{
    enter();
    CHECK(heap_of_thread() != own_heap);
    CHECK(heap_cached_blocks(heap_of_thread(), size_class_of(SIZE)) == 0);
    CHECK(identity_is_local(ATOMIC_LOAD_RELAXED(&heap_of_thread()->owner)));
}

/* Of the two threads one may have found the heap that the other left at its end. */
static void heaps_count(void)
{
    consistent();
    CHECK(heap_crowd() == 2 || heap_crowd() == 3);
}

SCENARIO(heaps_of_parent) = {
    .name = "heaps_of_parent",
    .about = "in a child of fork two threads find the heap of one that is not there",
    .prepare = become_a_child,
    .thread = {enter_in_child, enter_in_child},
    .preemptions_max = 2,
    .finish = heaps_count};

/* ---- Statistics -------------------------------------------------------------------------------
 */

static struct heap *counted;
static uint64_t pops;

static void count_pops(void)
{
    use_one();
    use_one();
    counted = heap_of_thread();
    pops = heap_pops(counted, size_class_of(SIZE));
    CHECK(pops > 0);
}

/* Two numbers tell how many pops there were: no mixture of old and new ones may be taken for it. */
static void draw_anew(void)
{
    heap_draw_due(counted, false);
}

static void look_at_pops(void)
{
    CHECK(heap_pops(counted, size_class_of(SIZE)) == pops);
}

SCENARIO(heaps_pops) = {
    .name = "heaps_pops",
    .about = "the pops of a heap are counted while its owner sets when the next one is due",
    .prepare = count_pops,
    .thread = {draw_anew, look_at_pops},
    .finish = consistent};

static void walk(void)
{
    size_t cached = 0;
    for (struct heap *heap = heap_first(); heap; heap = heap->next)
        for (unsigned size_class = 1; size_class < 3; size_class++)
            cached += heap_cached_blocks(heap, size_class);
    CHECK(cached == 0);
}

SCENARIO(heaps_walk) = {
    .name = "heaps_walk",
    .about = "statistics walk the heaps while one is made",
    .prepare = initialise,
    .thread = {enter, enter, walk},
    .finish = consistent,
    .preemptions_max = 2};

static void add_up(void)
{
    unsigned size_class = size_class_of(SIZE);
    heap_add_counts(size_class, size_class);
    CHECK(heap_counts(size_class).pops > 0);
}

SCENARIO(heaps_counts) = {
    .name = "heaps_counts",
    .about = "two threads ask for statistics, and one uses a heap",
    .prepare = initialise,
    .thread = {add_up, add_up, use_one},
    .finish = consistent,
    .preemptions_max = 2};

/* ---- Remote frees -------------------------------------------------------------------------------
 */

static void send_and_exit(void)
{
    ATOMIC_STORE_RELEASE(&mailbox, take());
    model_exit_thread();
}

static void receive_and_exit(void)
{
    void *block = ATOMIC_LOAD_ACQUIRE(&mailbox);
    if (block)
        give(block);
    model_exit_thread();
}

SCENARIO(heaps_remote) = {
    .name = "heaps_remote",
    .about = "a block is freed by another thread while its own exits",
    .prepare = initialise,
    .thread = {send_and_exit, receive_and_exit},
    .finish = consistent,
    .preemptions_max = 2};

SCENARIO(heaps_remote_adopted) = {
    .name = "heaps_remote_adopted",
    .about = "and a third takes blocks, perhaps with their heap",
    .prepare = fill_pool,
    .thread = {send_and_exit, receive_and_exit, use_one},
    .finish = consistent,
    .preemptions_max = 2};
