/* api/init: what becomes of the last thread's heap when the process ends. */
#include "unit.h"

#include <pthread.h>

#include "api/alloc.h"
#include "os/os.h"
#include "thread/idle.h"

static pthread_barrier_t barrier;

/* In memory that the child shares. */
static bool *left_gate;

/* Another thread is inside the gate when the process ends. */
static void *hold_gate(void *mine)
{
    struct heap *heap = mine;
    unsigned size_class = size_class_of(100), cached = heap_cached_blocks(heap, size_class);
    ATOMIC_STORE_RELEASE(&heap->gate, GATE_OTHER);
    pthread_barrier_wait(&barrier);
    os_sleep_ms(50);
    CHECK(cached > 0 && heap_cached_blocks(heap, size_class) == cached);
    ATOMIC_STORE_RELAXED(left_gate, true);
    ATOMIC_STORE_RELEASE(&heap->gate, GATE_FREE);
    for (;;)
        pause();
    return NULL;
}

static void end_process(void *unused)
{
    (void)unused;
    enum { BLOCKS = 50 };
    void *blocks[BLOCKS];
    pthread_t thread;
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = alloc(100)) != NULL);
    for (int i = 0; i < BLOCKS; i++)
        release(blocks[i]);
    heap_leave(heap_enter());
    pthread_barrier_init(&barrier, NULL, 2);
    CHECK(pthread_create(&thread, NULL, hold_gate, heap_of_thread()) == 0);
    pthread_barrier_wait(&barrier);
    exit(0);
}

/* What the last thread caches goes home when others have left its heap alone. */
static void the_end_of_the_process_waits_for_the_gate(void **state)
{
    (void)state;
    /* That sanitizer allows no new threads after the fork of a program with threads. */
    if (HAKMEM_SANITIZE_THREAD)
        skip();
    left_gate =
        mmap(NULL, sizeof *left_gate, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(left_gate, MAP_FAILED);
    unit_in_child(end_process, NULL);
    assert_true(*left_gate);
    munmap(left_gate, sizeof *left_gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_the_process_waits_for_the_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
