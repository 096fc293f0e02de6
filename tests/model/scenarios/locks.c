/* The lock itself, from core/os/lock.c, with a model of the futex. */
#include "engine/model.h"
#include "os/lock.h"
#include "os/os.h"

static struct lock lock;
static int counter, twin;

static void add(void)
{
    lock_acquire(&lock);
    counter++;
    twin++;
    lock_release(&lock);
}

static void add_twice(void)
{
    add();
    add();
}

static void check_three(void)
{
    CHECK(counter == 3 && lock.word == 0);
}

SCENARIO(locks_two) = {
    .name = "locks_two",
    .about = "two threads enter, one of them twice",
    .thread = {add_twice, add},
    .finish = check_three};

SCENARIO(locks_three) = {
    .name = "locks_three",
    .about = "three threads enter, and nobody sleeps for ever",
    .thread = {add, add, add},
    .finish = check_three,
    .preemptions_max = 2};

/* ---- Fork -------------------------------------------------------------------------------------
 */

static void open_or_mend(uint32_t before, uint32_t now)
{
    if (lock_is_lost(&lock, before))
        twin = counter;
    lock_inherit(&lock, before, now);
}

static void prepare_for_forks(void)
{
    identity_start(open_or_mend);
}

static void fork_and_add(void)
{
    add();
    model_fork();
    add();
}

static void child_has_lock(void)
{
    CHECK(counter >= 1 && counter <= 4 && counter == twin);
    CHECK(lock.word == 0);
}

SCENARIO(locks_fork_child) = {
    .name = "locks_fork_child",
    .about = "the child has the lock, whoever held it or waited for it",
    .prepare = prepare_for_forks,
    .thread = {fork_and_add, add, add},
    .finish = child_has_lock,
    .preemptions_max = 1};

static void fork_first(void)
{
    model_fork();
    add();
}

SCENARIO(locks_fork_first) = {
    .name = "locks_fork_first",
    .about = "the forking thread had no identity yet",
    .prepare = prepare_for_forks,
    .thread = {fork_first, add},
    .finish = child_has_lock};

/* A signal handler forks while the thread it interrupted holds the lock. */
static void fork_inside(void)
{
    lock_acquire(&lock);
    uint32_t before = identity_thread(identity_self());
    counter++;
    model_fork();
    twin++;
    uint32_t now = identity_thread(identity_self());
    CHECK(now != before && (lock.word & LOCK_HOLDER) == now);
    lock_release(&lock);
    add();
}

SCENARIO(locks_fork_inside) = {
    .name = "locks_fork_inside",
    .about = "the child goes on inside the lock",
    .prepare = prepare_for_forks,
    .thread = {fork_inside, add},
    .finish = child_has_lock};

static void fork_twice(void)
{
    model_fork();
    add();
    model_fork();
    add();
}

SCENARIO(locks_fork_twice) = {
    .name = "locks_fork_twice",
    .about = "the child forks again",
    .prepare = prepare_for_forks,
    .thread = {fork_twice, add},
    .finish = child_has_lock};

/* ---- A new process ----------------------------------------------------------------------------
 */

static int repairs;

static void count_repair(uint32_t before, uint32_t now)
{
    CHECK(now != before);
    repairs++;
}

/* As fork leaves it, for several threads. */
static void be_a_new_process(void)
{
    identity_start(count_repair);
    identity_self();
    identity_before_fork();
    identity_in_child();
}

static void ask_who_i_am(void)
{
    uint64_t self = identity_self();
    CHECK(self >> 32 == 2 && identity_is_local(self) && identity_self() == self);
    CHECK(repairs == 1);
}

SCENARIO(locks_new_process) = {
    .name = "locks_new_process",
    .about = "two threads of a new process find out at once; one of them repairs",
    .prepare = be_a_new_process,
    .thread = {ask_who_i_am, ask_who_i_am}};
