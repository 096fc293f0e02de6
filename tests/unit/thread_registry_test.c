/* thread/registry: which of the heaps that wait a thread gets, also in a child of fork; the areas
 * of new ones (behaviour 47). */
#include "unit.h"

#include <pthread.h>

#include "api/alloc.h"
#include "base/policy.h"
#include "checks/checks.h"
#include "os/os.h"
#include "slab/transfer.h"
#include "thread/idle.h"
#include "thread/registry.h"

enum { SHARDS = 3, CROWD = 3 * SHARDS };

/* A thread with a heap, which waits. */
struct waiter {
    pthread_t thread;
    pthread_barrier_t meets; /* it and who has started it: when it has its heap, and to end it */
    void *inherited;         /* what it frees first, or NULL */
    unsigned shard;
};

static void *wait_with_heap(void *argument)
{
    struct waiter *waiter = argument;
    release(waiter->inherited);
    release(alloc(100));
    waiter->shard = heap_of_thread()->shard;
    pthread_barrier_wait(&waiter->meets);
    pthread_barrier_wait(&waiter->meets);
    return NULL;
}

static void start(struct waiter *waiter)
{
    pthread_barrier_init(&waiter->meets, NULL, 2);
    CHECK(pthread_create(&waiter->thread, NULL, wait_with_heap, waiter) == 0);
    pthread_barrier_wait(&waiter->meets);
}

static void end(struct waiter *waiter)
{
    pthread_barrier_wait(&waiter->meets);
    CHECK(pthread_join(waiter->thread, NULL) == 0);
    pthread_barrier_destroy(&waiter->meets);
}

/* More threads than shards, that end in any order. */
static void have_crowd(uint64_t *random)
{
    static struct waiter crowd[CROWD];
    struct waiter *order[CROWD];
    for (unsigned i = 0; i < CROWD; i++) {
        start(&crowd[i]);
        unsigned place = unit_below(random, i + 1);
        order[i] = order[place];
        order[place] = &crowd[i];
    }
    for (unsigned i = 0; i < CROWD; i++)
        end(order[i]);
    heap_check_pool();
}

/* As many threads as shards, while the main thread only waits: each has a shard for itself, but for
 * that of the main thread, and so has who comes after one of them. */
static void meet_nobody(void)
{
    static struct waiter waiters[SHARDS];
    bool served[SHARDS] = {false};
    for (unsigned i = 0; i < SHARDS; i++) {
        start(&waiters[i]);
        CHECK(waiters[i].shard < SHARDS && !served[waiters[i].shard]);
        served[waiters[i].shard] = true;
    }
    for (unsigned i = 0; i < SHARDS; i++) {
        unsigned before = waiters[i].shard;
        end(&waiters[i]);
        start(&waiters[i]);
        CHECK(waiters[i].shard == before);
    }
    for (unsigned i = 0; i < SHARDS; i++)
        end(&waiters[i]);
    heap_check_pool();
}

/* A block of that shard: its stack may hold those of others. */
static void *make_block(unsigned shard)
{
    void *block;
    transfer_drain(SIZE_MAX);
    for (enum refill cost = REFILL_USED; cost <= REFILL_MAP; cost++)
        if (bin_refill(shard, size_class_of(100), &block, 1, 1, cost))
            return block;
    return NULL;
}

/* Threads as many as that come and end while the main thread waits, all at once; then one that
 * first frees a block of that shard. Returns the shard that it gets. */
static unsigned follow(unsigned ended, unsigned of_block)
{
    static struct waiter before[SHARDS];
    struct waiter waiter = {.inherited = make_block(of_block)};
    CHECK(waiter.inherited && slab_lookup(waiter.inherited)->shard == of_block);
    for (unsigned i = 0; i < ended; i++)
        start(&before[i]);
    for (unsigned i = 0; i < ended; i++)
        end(&before[i]);
    start(&waiter);
    end(&waiter);
    return waiter.shard;
}

/* A thread goes on in the shard of the block that it frees first, if several have ended at once;
 * but not in the main thread's, and not if one has ended alone. */
static void threads_go_on_where_others_ended(void **state)
{
    (void)state;
    policy.purge_delay_ms = 3600000; /* the heaps stay warm */
    release(alloc(100));
    shard_init(SHARDS);
    meet_nobody();
    CHECK(follow(2, 2) == 2);
    CHECK(follow(2, 1) == 1);
    CHECK(follow(2, 0) == 1);
    CHECK(follow(2, 2) == 2);
    CHECK(follow(1, 2) == 1);
    heap_check_pool();
}

static void threads_are_spread_over_shards(void **state)
{
    (void)state;
    uint64_t random = 5;
    release(alloc(100));
    shard_init(SHARDS);
    CHECK(heap_of_thread()->shard == 0);
    for (int round = 0; round < 50; round++) {
        have_crowd(&random);
        if (round % 8 == 0)
            registry_flush_pool();
        meet_nobody();
    }
}

/* ---- A child of fork -------------------------------------------------------------------------
 */

static unsigned heaps_made(void)
{
    unsigned count = 0;
    for (const struct heap *heap = heap_first(); heap; heap = heap->next)
        count++;
    return count;
}

/* Takes heaps until it gets that one: it is found before a new one is made, or not at all. */
static void adopt(void *wanted)
{
    alarm(HANG_SECONDS);
    heap_leave(heap_enter());
    unsigned most = 2 * heaps_made();
    struct heap *heap;
    do {
        CHECK(most-- > 0);
        heap = registry_adopt();
    } while (heap != wanted);
    heap->depth++;
    idle_enter(heap);
    heap_check(heap);
    idle_leave(heap);
    heap_check_pool();
}

/* Somebody was just inside its gate, who does not exist in the child. */
static void a_pooled_heap_is_adopted_whoever_held_its_gate(void **state)
{
    (void)state;
    struct heap *heap = registry_adopt();
    registry_give_back(heap);
    ATOMIC_STORE_RELAXED(&heap->gate, GATE_OTHER);
    unit_in_child(adopt, heap);
    ATOMIC_STORE_RELAXED(&heap->gate, GATE_FREE);
}

/* Somebody had just taken it out of the pool. */
static void a_claimed_heap_is_adopted(void **state)
{
    enum { CLAIMED = 2 }; /* as in registry.c */
    (void)state;
    struct heap *heap = registry_adopt();
    uint64_t owner = heap->owner;
    ATOMIC_STORE_RELAXED(&heap->owner, CLAIMED);
    unit_in_child(adopt, heap);
    ATOMIC_STORE_RELAXED(&heap->owner, owner);
    registry_give_back(heap);
}

/* The forking thread ends in the child, where it made no slow call, beside one with a heap. */
static void end_at_once(void *unused)
{
    (void)unused;
    struct heap *other = registry_adopt();
    CHECK(registry.owned == 1);
    heap_forget();
    CHECK(registry.owned == 1);
    registry_give_back(other);
    CHECK(registry.owned == 0);
}

static void a_forking_thread_counts_until_it_ends(void **state)
{
    (void)state;
    release(alloc(100));
    unit_in_child(end_at_once, NULL);
}

/* ---- Areas ------------------------------------------------------------------------------------
 */

enum { HEAPS = 500, MAPPINGS_MAX = 200, UNUSED_PART = 25 };

static void check_fresh(const struct heap *heap)
{
    const char *area = (const char *)heap->area;
    CHECK(unit_all_bytes(area + HEAP_BYTES / 2, HEAP_BYTES / 2, 0));
    for (const struct heap *other = heap_first(); other; other = other->next) {
        const char *others = (const char *)other->area;
        CHECK(other == heap || area + HEAP_BYTES <= others || others + HEAP_BYTES <= area);
    }
}

/* Many heaps are few mappings, and each has its own area. Few addresses are unused, since there may
 * be a limit on them. */
static void areas_lie_side_by_side(void **state)
{
    (void)state;
    static struct heap *heaps[HEAPS];
    uint64_t maps = os_counts[OS_MMAP];
    for (unsigned i = 0; i < HEAPS; i++) {
        heaps[i] = registry_adopt();
        CHECK(heaps[i]);
        check_fresh(heaps[i]);
        size_t unused = (size_t)(registry.areas_end - registry.areas);
        CHECK(unused <= registry.count * HEAP_BYTES / UNUSED_PART);
    }
    CHECK(os_counts[OS_MMAP] - maps < MAPPINGS_MAX);
    for (unsigned i = 0; i < HEAPS; i++)
        registry_give_back(heaps[i]);
    heap_check_pool();
}

/* The thread that was about to set the bounds of areas does not exist in the child. */
static void lose_areas(void *unused)
{
    (void)unused;
    heap_repair_registry();
    for (unsigned i = 0; i < 3; i++) {
        char *area = registry_new_area();
        CHECK(area && unit_all_bytes(area, HEAP_BYTES, 0));
        memset(area, 1, HEAP_BYTES);
    }
}

static void areas_are_repaired(void **state)
{
    (void)state;
    char *before = registry.areas;
    registry.areas = (char *)CACHE_LINE;
    unit_in_child(lose_areas, NULL);
    registry.areas = before;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_spread_over_shards),
        cmocka_unit_test(threads_go_on_where_others_ended),
        cmocka_unit_test(a_pooled_heap_is_adopted_whoever_held_its_gate),
        cmocka_unit_test(a_claimed_heap_is_adopted),
        cmocka_unit_test(a_forking_thread_counts_until_it_ends),
        cmocka_unit_test(areas_lie_side_by_side),
        cmocka_unit_test(areas_are_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
