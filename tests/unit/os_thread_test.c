/* os/thread: the thread that the C library does not know. */
#include "unit.h"

#include <sys/prctl.h>

#include "api/watch.h"
#include "os/identity.h"
#include "os/os.h"
#include "os/thread.h"
#include "thread/heap.h"

/* What the thread found; atomic: release by it, acquire by the test. */
static struct {
    uint64_t identity; /* before it asked for one */
    uint32_t id;       /* by its own identity */
    uint32_t real_id;
    bool is_bare, answers, done;
} found;

static void run(void)
{
    found.identity = own_identity;
    heap_begin_bare_thread();
    found.id = identity_thread(identity_self());
    found.real_id = os_thread_id();
    found.is_bare = os_thread_is_bare();
    found.answers = watch_answer_asleep();
    __atomic_store_n(&found.done, true, __ATOMIC_RELEASE);
}

static bool start(void)
{
    const void *const variables[2] = {(void *)&thread_heap, &own_identity};
    found.done = false;
    return os_thread_start(run, variables);
}

/* Each has an identity of its own, though it lies where that of the last one lay; and no request of
 * an observer is answered in it, which takes a thread of the C library. */
static void it_knows_itself_and_starts_anew(void **state)
{
    (void)state;
    if (prctl(PR_GET_SECCOMP) != 0)
        skip(); /* a container's filter: then there is none */
    os_thread_begin_process();
    assert_false(os_thread_is_bare());
    for (int i = 0; i < 50; i++) {
        /* The last one may take long to end on a busy machine. */
        for (int tries = 0; !start(); tries++)
            assert_true(tries < 1000);
        while (!__atomic_load_n(&found.done, __ATOMIC_ACQUIRE))
            os_sleep_ms(1);
        assert_int_equal(found.identity, 0);
        assert_int_equal(found.id, found.real_id);
        assert_true(found.is_bare);
        assert_false(found.answers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_knows_itself_and_starts_anew)};
    return HAKMEM_SANITIZE_ADDRESS || HAKMEM_SANITIZE_THREAD
               ? 0
               : cmocka_run_group_tests(tests, NULL, NULL);
}
