#include "misuse.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The block lies in the cache of another thread, and the process ends by _exit.
 * tiny: not caught
 * mid, large, big: at once | free(): double free of BAD
 * hardened tiny: at once | free(): double free of BAD */
CASE(double, across_threads_then_immediate_exit)
{
    struct helper helper;
    helper_start(&helper);
    void *block = new_victim(size);
    helper_free(&helper, block);
    free_wrongly(block);
    _exit(0);
}

enum { ROUNDS = 100, SPINS = 10000 };

static atomic_int ready;

static void *free_together(void *block)
{
    /* Neither shall be held up by its first call. */
    free(need(malloc(1)));
    atomic_fetch_add(&ready, 1);
    /* Where others use the processors as well, the other thread may wait for this one's. */
    for (int i = 0; atomic_load(&ready) < 2; i++)
        if (i > SPINS)
            sched_yield();
    free(block);
    return NULL;
}

static void race(void *block)
{
    pthread_t other;
    if (pthread_create(&other, NULL, free_together, block) != 0)
        broken("no thread");
    free_together(block);
    pthread_join(other, NULL);
    survived();
    exit(0);
}

/* Two threads free the same block at the same time; a hundred processes in turn make the mistake.
 * tiny, mid, large: at once or at drain | free(): double free of BAD
 * big: at once | free(): double free of BAD */
CASE(double, at_the_same_time)
{
    int status = 0;
    void *block = new_victim(size);
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        if (child == 0 && i < ROUNDS - 1) {
            /* The runner reads the words of the last one. */
            int nowhere = open("/dev/null", O_WRONLY);
            dup2(nowhere, STDOUT_FILENO);
            dup2(nowhere, STDERR_FILENO);
        }
        if (child == 0)
            race(block);
        if (child < 0 || waitpid(child, &status, 0) != child)
            broken("no child");
        if (!WIFSIGNALED(status))
            return;
    }
    raise(WTERMSIG(status));
}

/* A hundred thousand blocks come and go, and then another thread frees the block again. Their
 * slabs may lie where a large one lay, or, if it was unmapped at once, a big one.
 * tiny, large: at once or at drain or at exit | free(): double free of BAD
 * mid: at once | free(): double free of BAD
 * big: at once or at drain or at exit or not caught | free(): double free of BAD */
CASE(double, by_another_thread_with_many_between)
{
    void *block = new_victim(size);
    free(block);
    for (size_t i = 0; i < 100000; i++)
        free(need(malloc(1 + i * 37 % 2000)));
    run_in_thread(thread_frees_wrongly, block);
}

static void helper_cancel(struct helper *helper)
{
    pthread_cancel(helper->thread);
    pthread_join(helper->thread, NULL);
}

/* The first free was made by a thread that was cancelled.
 * all: at once | free(): double free of BAD */
CASE(double, first_in_cancelled_thread)
{
    struct helper helper;
    helper_start(&helper);
    helper_cancel(&helper); /* the C library opens what it takes, which allocates */
    helper_start(&helper);
    void *block = new_victim(size);
    helper_free(&helper, block);
    helper_cancel(&helper);
    free_wrongly(block);
}

/* The first free was made by a thread that has ended.
 * all: at once | free(): double free of BAD */
CASE(double, first_in_ended_thread)
{
    struct helper helper;
    helper_start(&helper);
    void *block = new_victim(size);
    helper_free(&helper, block);
    helper_end(&helper);
    free_wrongly(block);
}

/* The first free was made by a thread that lives on, so that the block lies in its cache.
 * tiny: at drain or at exit | free(): double free of BAD
 * mid, large, big: at once | free(): double free of BAD
 * hardened tiny: at once | free(): double free of BAD */
CASE(double, first_in_live_thread)
{
    struct helper helper;
    helper_start(&helper);
    void *block = new_victim(size);
    helper_free(&helper, block);
    free_wrongly(block);
    helper_end(&helper);
}

static sem_t freed;

static void *free_and_vanish(void *block)
{
    free(block);
    sem_post(&freed);
    syscall(SYS_exit, 0);
    return NULL;
}

/* The first free was made by a thread that ended by a bare system call, so that its cache was never
 * given back. Only a new thread that takes the cache over, or many of them, would find it.
 * tiny: not caught
 * mid, large, big: at once | free(): double free of BAD
 * hardened tiny: at once | free(): double free of BAD */
CASE(double, first_in_thread_ended_by_kernel)
{
    pthread_t thread;
    sem_init(&freed, 0, 0);
    void *block = new_victim(size);
    if (pthread_create(&thread, NULL, free_and_vanish, block) != 0)
        broken("no thread");
    sem_wait(&freed);
    free_wrongly(block);
}

/* Ends the program by the signal that the child's free ends the child by. */
static void free_in_child(void *block)
{
    pid_t child = fork();
    if (child == 0) {
        free_wrongly(block);
        exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        broken("no child");
    if (WIFSIGNALED(status))
        raise(WTERMSIG(status));
}

/* The second free comes in a child of fork: it has a copy of the heap, in which the block is free.
 * all: at once | free(): double free of BAD */
CASE(double, in_forked_child)
{
    void *block = new_victim(size);
    free(block);
    free_in_child(block);
}

/* The first free left the block in the cache of a thread that a child of fork does not have. The
 * child forgets that cache, in which anything may be half done: there the block is in use, and the
 * child's free is its first.
 * tiny: not caught
 * mid, large, big: at once | free(): double free of BAD
 * hardened tiny: at once | free(): double free of BAD */
CASE(double, in_forked_child_of_lost_thread)
{
    struct helper helper;
    helper_start(&helper);
    void *block = new_victim(size);
    helper_free(&helper, block);
    free_in_child(block);
    helper_end(&helper);
}

/* Two threads free the same block; the first has ended before the second begins.
 * all: at once | free(): double free of BAD */
CASE(double, in_two_ended_threads)
{
    struct helper first, second;
    helper_start(&first);
    helper_start(&second);
    void *block = new_victim(size);
    helper_free(&first, block);
    helper_end(&first);
    helper_free(&second, block);
    survived();
    helper_end(&second);
}

/* Two threads free the same block, and both end after that.
 * tiny: at drain | free(): double free of BAD
 * mid, large, big: at once | free(): double free of BAD
 * hardened tiny: at once | free(): double free of BAD */
CASE(double, in_two_live_threads)
{
    struct helper first, second;
    helper_start(&first);
    helper_start(&second);
    void *block = new_victim(size);
    helper_free(&first, block);
    helper_free(&second, block);
    helper_end(&first);
    helper_end(&second);
    survived();
}

/* Two threads free the same block, and one of them is still there when the process exits: its cache
 * cannot be looked at.
 * tiny: not caught
 * mid, large, big: at once | free(): double free of BAD
 * hardened tiny: at once | free(): double free of BAD */
CASE(double, in_two_running_threads)
{
    static struct helper helper;
    helper_start(&helper);
    void *block = new_victim(size);
    helper_free(&helper, block);
    free_wrongly(block);
}

/* Another thread frees a block that lies in the cache of this one.
 * tiny: at drain | free(): double free of BAD
 * mid, large, big: at once | free(): double free of BAD
 * hardened tiny: at once | free(): double free of BAD */
CASE(double, second_in_live_thread)
{
    struct helper helper;
    helper_start(&helper);
    void *block = new_victim(size);
    free(block);
    helper_free(&helper, block);
    helper_end(&helper);
    survived();
}
