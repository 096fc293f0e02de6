/* The lock itself, from core/os/lock.c, with a model of the futex. */
#include "engine/model.h"
#include "os/lock.h"
#include "os/os.h"

static struct lock lock;
static int counter;

static void add(void)
{
    lock_acquire(&lock);
    counter++;
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

static void prepare_and_finish(void)
{
    lock_prepare_fork(&lock);
    add();
    lock_finish_fork(&lock);
}

SCENARIO(locks_fork_parent) = {
    .name = "locks_fork_parent",
    .about = "the fork handlers hold the lock, and may enter it",
    .thread = {prepare_and_finish, add, add},
    .finish = check_three,
    .preemptions_max = 1};

static void prepare_and_fork(void)
{
    lock_prepare_fork(&lock);
    uint32_t before = lock_self();
    model_fork();
    lock_identify();
    lock_adopt_in_child(&lock, before);
    add();
}

static void child_has_lock(void)
{
    CHECK(counter >= 1 && counter <= 3);
    CHECK((lock.word & LOCK_HOLDER) == 0);
}

SCENARIO(locks_fork_child) = {
    .name = "locks_fork_child",
    .about = "the child opens the lock, whoever was waiting for it",
    .thread = {prepare_and_fork, add, add},
    .finish = child_has_lock,
    .preemptions_max = 1};

/* A signal handler forks while the thread it interrupted holds the lock. */
static void fork_inside(void)
{
    lock_acquire(&lock);
    counter++;
    lock_prepare_fork(&lock);
    lock_finish_fork(&lock);
    counter++;
    lock_release(&lock);
}

static void check_two_more(void)
{
    CHECK(counter == 4 && lock.word == 0);
}

SCENARIO(locks_fork_inside) = {
    .name = "locks_fork_inside",
    .about = "a fork inside the lock leaves it held",
    .thread = {fork_inside, add, add},
    .finish = check_two_more,
    .preemptions_max = 1};

static void fork_child_inside(void)
{
    lock_acquire(&lock);
    counter++;
    lock_prepare_fork(&lock);
    uint32_t before = lock_self();
    model_fork();
    lock_identify();
    lock_adopt_in_child(&lock, before);
    CHECK((lock.word & LOCK_HOLDER) == lock_self());
    lock_release(&lock);
    add();
}

SCENARIO(locks_fork_child_inside) = {
    .name = "locks_fork_child_inside",
    .about = "the child goes on inside the lock",
    .thread = {fork_child_inside, add},
    .finish = child_has_lock};
