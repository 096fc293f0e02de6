/* thread/heap, api: what becomes of heaps and blocks when addresses run out inside the window of
 * the class map, and the wide one is made. That happens once in a process, so each case runs in a
 * child. */
#include "unit.h"

#include <pthread.h>
#include <semaphore.h>

#include "api/alloc.h"
#include "base/pressure.h"
#include "checks/checks.h"
#include "reclaim/engine.h"
#include "slab/slab.h"
#include "thread/heap.h"

enum { SIZE = 400, FRESH = 30000 };

static struct heap *heap(void)
{
    return heap_of_thread();
}

static void *take(void)
{
    char *block = alloc(SIZE);
    CHECK(block);
    memset(block, 1, SIZE);
    return block;
}

static uint64_t slow_frees(void)
{
    uint64_t sum = 0;
    for (unsigned size_class = 1; size_class < CLASS_COUNT; size_class++)
        sum += magazine_of(heap(), size_class)->counts.overflows;
    return sum;
}

static char *reserve(size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    return mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
}

/* All addresses near those in use are taken, as by a program that reserves many: first those below,
 * then the gaps between mappings. */
static bool take_addresses(void)
{
    char *below = reserve(256 * GIB);
    if (below == MAP_FAILED)
        return false;
    for (size_t bytes = GIB; bytes >= REGION_SIZE; bytes /= 2)
        for (char *gap = reserve(bytes); gap != MAP_FAILED; gap = reserve(bytes))
            if (gap < below) {
                CHECK(munmap(gap, bytes) == 0);
                break;
            }
    return true;
}

/* The heap grows, elsewhere. */
static void grow(void)
{
    CHECK(take_addresses());
    CHECK(class_map_newest() == &class_map);
    for (unsigned i = 0; i < FRESH; i++)
        take();
    CHECK(class_map_newest() == &wide_class_map);
    CHECK(heap()->area->front.classes == wide_class_map.classes);
}

/* What was handed out before and what is after: one slow free a slab, then they hit. */
static void free_old_and_new(void *unused)
{
    (void)unused;
    unsigned size_class = size_class_for_shard(size_class_of(SIZE), heap()->shard);
    void *old[] = {take(), take(), take(), take()};
    grow();
    for (unsigned i = 0; i < ARRAY_LENGTH(old); i++) {
        bool known = class_map_get(old[i]) == size_class;
        bool full = magazine_is_full(&heap()->area->front, size_class);
        uint64_t before = slow_frees();
        release(old[i]);
        CHECK(class_map_get(old[i]) == size_class);
        CHECK(slow_frees() - before == (!known || full));
    }
    void *fresh[100];
    for (unsigned i = 0; i < ARRAY_LENGTH(fresh); i++)
        CHECK(class_map_get(fresh[i] = take()) == size_class);
    uint64_t before = slow_frees();
    for (unsigned i = 0; i < ARRAY_LENGTH(fresh); i++)
        release(fresh[i]);
    CHECK(slow_frees() - before <= 2);
    heap_check(heap());
}

/* A unit whose slab has gone has no class in either map, whatever lies there now. */
static void use_units_again(void *unused)
{
    (void)unused;
    static void *old[2000];
    unsigned gone = 0;
    for (unsigned i = 0; i < ARRAY_LENGTH(old); i++)
        old[i] = take();
    grow();
    for (unsigned i = 0; i < ARRAY_LENGTH(old); i++)
        release(old[i]);
    heap_flush(heap(), SIZE_MAX);
    reclaim_everything();
    for (unsigned i = 0; i < ARRAY_LENGTH(old); i++) {
        if (slab_lookup(old[i]))
            continue;
        gone++;
        size_t index = ((uintptr_t)old[i] - class_map.base) >> UNIT_SHIFT;
        CHECK(class_map_get(old[i]) == CLASS_NONE);
        CHECK(index >= class_map.limit || class_map.classes[index] == CLASS_NONE);
    }
    CHECK(gone > ARRAY_LENGTH(old) / 2);
}

static sem_t has_heap, may_free;
static void *passed;

static void *free_what_others_took(void *unused)
{
    void *own = take();
    CHECK(heap()->area->front.classes == class_map.classes);
    CHECK(sem_post(&has_heap) == 0);
    CHECK(sem_wait(&may_free) == 0);
    CHECK(heap()->area->front.classes == class_map.classes);
    release(passed);
    CHECK(heap()->area->front.classes == wide_class_map.classes);
    release(own);
    heap_check(heap());
    return unused;
}

/* A thread that was there before goes on with the window until it meets what that has not. */
static void free_in_another_thread(void *unused)
{
    (void)unused;
    pthread_t thread;
    CHECK(sem_init(&has_heap, 0, 0) == 0 && sem_init(&may_free, 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, free_what_others_took, NULL) == 0);
    CHECK(sem_wait(&has_heap) == 0);
    grow();
    passed = take();
    CHECK(sem_post(&may_free) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Behaviour 24: freed under one map and again under the other. */
static void free_before_and_after(void *block)
{
    release(block);
    grow();
    release(block);
}

static void free_twice_after(void *block)
{
    grow();
    release(block);
    release(block);
}

static bool addresses_can_be_taken(void)
{
    pid_t child = fork();
    int status = 1;
    if (child == 0)
        _exit(take_addresses() ? 0 : 1);
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status == 0;
}

static void blocks_of_all_times_hit(void **state)
{
    (void)state;
    if (!addresses_can_be_taken())
        skip();
    release(take());
    unit_in_child(free_old_and_new, NULL);
    unit_in_child(use_units_again, NULL);
}

static void each_heap_changes_over_by_itself(void **state)
{
    (void)state;
    if (!addresses_can_be_taken())
        skip();
    release(take());
    unit_in_child(free_in_another_thread, NULL);
}

static void double_frees_are_named_across_the_change(void **state)
{
    (void)state;
    if (!addresses_can_be_taken())
        skip();
    char line[200];
    /* Of a size that nobody else asks for. */
    void *neighbour = alloc(48), *block = alloc(48);
    snprintf(line, sizeof line, "hakmem: free(): double free of %p", block);
    unit_expect_abort(free_before_and_after, block, line);
    unit_expect_abort(free_twice_after, block, line);
    release(block);
    release(neighbour);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_all_times_hit),
        cmocka_unit_test(each_heap_changes_over_by_itself),
        cmocka_unit_test(double_frees_are_named_across_the_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
