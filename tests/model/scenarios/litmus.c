/* Tests of the engine itself: small programs whose outcomes under C11 are known, some with the
 * number of executions that are not equivalent, and defects that it has to see. */
#include "base/atomic.h"
#include "engine/model.h"
#include "os/lock.h"
#include "os/os.h"

#define UNSEEN __attribute__((no_sanitize("thread"), noinline))

static int x, y, data;
static int first, second;
static struct lock lock;
static char *mapping;

/* The outcomes of all executions, a bit each: what the threads have noted. */
static unsigned outcomes;

UNSEEN static void note_first(int value)
{
    first = value;
}

UNSEEN static void note_second(int value)
{
    second = value;
}

UNSEEN static void add_outcome(void)
{
    outcomes |= 1u << (2 * first + second);
}

/* ---- Store buffering: each may miss the other's store ------------------------------------------
 */

static void buffer_x(void)
{
    ATOMIC_STORE_RELAXED(&x, 1);
    note_first(ATOMIC_LOAD_RELAXED(&y));
}

static void buffer_y(void)
{
    ATOMIC_STORE_RELAXED(&y, 1);
    note_second(ATOMIC_LOAD_RELAXED(&x));
}

UNSEEN static void all_four(void)
{
    CHECK(outcomes == 0xf);
}

SCENARIO(store_buffering) = {
    .name = "litmus_store_buffering",
    .about = "four outcomes",
    .thread = {buffer_x, buffer_y},
    .finish = add_outcome,
    .conclude = all_four};

/* ---- Message passing ---------------------------------------------------------------------------
 */

static void send(void)
{
    data = 1;
    ATOMIC_STORE_RELEASE(&x, 1);
}

static void send_relaxed(void)
{
    data = 1;
    ATOMIC_STORE_RELAXED(&x, 1);
}

static void receive(void)
{
    if (ATOMIC_LOAD_ACQUIRE(&x))
        CHECK(data == 1);
}

static void receive_relaxed(void)
{
    if (ATOMIC_LOAD_RELAXED(&x))
        CHECK(data == 1);
}

SCENARIO(message) = {
    .name = "litmus_message",
    .about = "release and acquire order plain data",
    .thread = {send, receive},
    .executions = 3};

SCENARIO(message_stored_relaxed) = {
    .name = "litmus_message_store",
    .about = "a relaxed store does not",
    .thread = {send_relaxed, receive},
    .must_fail = "data race"};

SCENARIO(message_loaded_relaxed) = {
    .name = "litmus_message_load",
    .about = "nor a relaxed load",
    .thread = {send, receive_relaxed},
    .must_fail = "data race"};

static void wait_for_message(void)
{
    while (!ATOMIC_LOAD_ACQUIRE(&x))
        model_yield();
    CHECK(data == 1);
}

SCENARIO(message_awaited) = {
    .name = "litmus_message_awaited",
    .about = "a spin loop ends",
    .thread = {send, wait_for_message}};

static void wait_and_look(void)
{
    while (!ATOMIC_LOAD_ACQUIRE(&x)) {
        CHECK(!ATOMIC_LOAD_RELAXED(&y));
        model_yield();
    }
    CHECK(data == 1);
}

SCENARIO(message_awaited_idly) = {
    .name = "litmus_message_idly",
    .about = "and one that looks at something else in each round",
    .thread = {wait_and_look, send}};

static void send_and_take_back(void)
{
    ATOMIC_STORE_RELAXED(&x, 1);
    ATOMIC_STORE_RELAXED(&x, 0);
}

static void look(void)
{
    (void)ATOMIC_LOAD_RELAXED(&x);
}

/* Before, between and after the stores: 1, 2, and not 3, but 2. */
SCENARIO(same_value) = {
    .name = "litmus_same_value",
    .about = "of two stores of a value a load returns one",
    .thread = {send_and_take_back, look},
    .executions = 5};

SCENARIO(never_sent) = {
    .name = "litmus_never_sent",
    .about = "one that nobody ends is seen",
    .thread = {wait_for_message},
    .must_fail = "nobody can go on"};

/* ---- Chains: a modification keeps what a release published, a store does not
 * --------------------- */

static void pass_on(void)
{
    int expected = 1;
    __atomic_compare_exchange_n(&x, &expected, 2, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void overwrite(void)
{
    if (ATOMIC_LOAD_RELAXED(&x) == 1)
        ATOMIC_STORE_RELAXED(&x, 2);
}

static void receive_second(void)
{
    if (ATOMIC_LOAD_ACQUIRE(&x) == 2)
        CHECK(data == 1);
}

SCENARIO(chain) = {
    .name = "litmus_chain", .about = "release sequence", .thread = {send, pass_on, receive_second}};

SCENARIO(chain_broken) = {
    .name = "litmus_chain_broken",
    .about = "a store ends it",
    .thread = {send, overwrite, receive_second},
    .must_fail = "data race"};

/* ---- Coherence: who has read the new value does not read the old one again
 * ------------------------ */

static void store_twice(void)
{
    ATOMIC_STORE_RELAXED(&x, 1);
    ATOMIC_STORE_RELAXED(&x, 2);
}

static void load_twice(void)
{
    int before = ATOMIC_LOAD_RELAXED(&x);
    CHECK(ATOMIC_LOAD_RELAXED(&x) >= before);
}

SCENARIO(coherence) = {
    .name = "litmus_coherence",
    .about = "reads do not go back",
    .thread = {store_twice, load_twice, load_twice}};

/* Two that read two independent stores may disagree about their order. */
static void store_x(void)
{
    ATOMIC_STORE_RELEASE(&x, 1);
}

static void store_y(void)
{
    ATOMIC_STORE_RELEASE(&y, 1);
}

static void read_xy(void)
{
    bool is_new = ATOMIC_LOAD_ACQUIRE(&x);
    note_first(is_new && !ATOMIC_LOAD_ACQUIRE(&y));
}

static void read_yx(void)
{
    bool is_new = ATOMIC_LOAD_ACQUIRE(&y);
    note_second(is_new && !ATOMIC_LOAD_ACQUIRE(&x));
}

SCENARIO(independent_reads) = {
    .name = "litmus_independent_reads",
    .about = "readers may disagree",
    .thread = {store_x, store_y, read_xy, read_yx},
    .finish = add_outcome,
    .conclude = all_four};

/* ---- Counting
 * ------------------------------------------------------------------------------------- */

static void exchange_x(void)
{
    __atomic_exchange_n(&x, 1, __ATOMIC_RELAXED);
}

SCENARIO(three_exchanges) = {
    .name = "litmus_three_exchanges",
    .about = "3! orders",
    .thread = {exchange_x, exchange_x, exchange_x},
    .executions = 6};

SCENARIO(nothing_shared) = {
    .name = "litmus_nothing_shared",
    .about = "one order stands for all",
    .thread = {store_x, store_y},
    .executions = 1};

static void add_locked(void)
{
    lock_acquire(&lock);
    data++;
    lock_release(&lock);
}

static void three_added(void)
{
    CHECK(data == 3);
}

SCENARIO(three_locked) = {
    .name = "litmus_three_locked",
    .about = "3! orders of a lock",
    .thread = {add_locked, add_locked, add_locked},
    .finish = three_added};

/* ---- Defects
 * ---------------------------------------------------------------------------------------- */

static void add_unlocked(void)
{
    data++;
}

SCENARIO(unlocked) = {
    .name = "litmus_unlocked",
    .about = "an access without the lock",
    .thread = {add_locked, add_unlocked},
    .must_fail = "data race"};

static void add_in_two_steps(void)
{
    ATOMIC_STORE_RELAXED(&x, ATOMIC_LOAD_RELAXED(&x) + 1);
}

static void two_added(void)
{
    CHECK(x == 2);
}

SCENARIO(lost_update) = {
    .name = "litmus_lost_update",
    .about = "load and store are not one step",
    .thread = {add_in_two_steps, add_in_two_steps},
    .finish = two_added,
    .must_fail = "CHECK(x == 2)"};

static void map(void)
{
    mapping = os_map(4096, 4096, NULL);
}

static void unmap(void)
{
    os_unmap(mapping, 4096);
    ATOMIC_STORE_RELEASE(&x, 1);
}

static void touch(void)
{
    if (ATOMIC_LOAD_ACQUIRE(&x))
        mapping[8] = 1;
}

SCENARIO(unmapped) = {
    .name = "litmus_unmapped",
    .about = "an access to memory that has gone",
    .prepare = map,
    .thread = {unmap, touch},
    .must_fail = "not mapped"};

static void sleep_once(void)
{
    uint32_t *word = (uint32_t *)&x;
    os_futex_wait(word, 0);
}

static void wake_first(void)
{
    ATOMIC_STORE_RELAXED(&y, 1);
    os_futex_wake((uint32_t *)&x);
}

SCENARIO(lost_wake) = {
    .name = "litmus_lost_wake",
    .about = "who sleeps after the wake sleeps for ever",
    .thread = {sleep_once, wake_first},
    .must_fail = "nobody can go on"};

static int other;

static void write_two(void)
{
    data = 1;
    other = 1;
    KEEP_STORE_ORDER();
    ATOMIC_STORE_RELAXED(&x, 1);
    KEEP_STORE_ORDER();
    data = 2;
    other = 2;
}

static void fork_and_compare(void)
{
    model_fork();
    CHECK(data == other);
}

static void fork_and_read(void)
{
    model_fork();
    CHECK(data == other || data == other + 1);
    CHECK(data <= x + 1 && other >= x);
    data = 3;
    CHECK(data == 3);
}

SCENARIO(torn) = {
    .name = "litmus_fork_torn",
    .about = "fork copies half a change",
    .thread = {write_two, fork_and_compare},
    .must_fail = "data == other"};

/* 5 places between its writes and steps, and what is not written yet or no longer to be seen. */
SCENARIO(moment) = {
    .name = "litmus_fork_moment",
    .about = "but what was written first is there if what was written later is",
    .thread = {write_two, fork_and_read}};
