/* Owns the cases in which two threads give back the same block: behaviour 24.
 */
#include "misuse.h"

#include <semaphore.h>

/* A thread that is there before the first free: starting one allocates, and could be given the
 * freed block. Until it is told to, it makes no call into the library. */
struct helper {
    pthread_t thread;
    sem_t go;
    sem_t freed;
    sem_t leave;
    void *block;
    bool loud;
};

static void *help(void *argument)
{
    struct helper *helper = argument;
    sem_wait(&helper->go);
    free(helper->block);
    if (helper->loud) {
        survived();
    }
    sem_post(&helper->freed);
    sem_wait(&helper->leave);
    return NULL;
}

static void start_helper(struct helper *helper, bool loud)
{
    helper->loud = loud;
    sem_init(&helper->go, 0, 0);
    sem_init(&helper->freed, 0, 0);
    sem_init(&helper->leave, 0, 0);
    if (pthread_create(&helper->thread, NULL, help, helper) != 0) {
        broken("no thread");
    }
}

static void free_by_helper(struct helper *helper, void *block)
{
    helper->block = hide(block);
    sem_post(&helper->go);
    sem_wait(&helper->freed);
}

static void end_helper(struct helper *helper)
{
    sem_post(&helper->leave);
    pthread_join(helper->thread, NULL);
}

static void double_first_in_another_thread(size_t size)
{
    make_room(size);
    struct helper helper;
    start_helper(&helper, false);
    void *block = need(malloc(size));
    announce(block, block);
    free_by_helper(&helper, block);
    end_helper(&helper);
    free_again(block);
}

/* The second free is the other thread's first call. */
static void double_second_in_another_thread(size_t size)
{
    make_room(size);
    struct helper helper;
    start_helper(&helper, true);
    void *block = need(malloc(size));
    announce(block, block);
    free(block);
    free_by_helper(&helper, block);
    end_helper(&helper);
}

static void double_in_two_threads(size_t size)
{
    make_room(size);
    struct helper first, second;
    start_helper(&first, false);
    start_helper(&second, true);
    void *block = need(malloc(size));
    announce(block, block);
    free_by_helper(&first, block);
    end_helper(&first);
    free_by_helper(&second, block);
    end_helper(&second);
}

/* Both copies lie in caches of threads that are alive at the same time. */
static void double_in_two_live_threads(size_t size)
{
    make_room(size);
    struct helper first, second;
    start_helper(&first, false);
    start_helper(&second, true);
    void *block = need(malloc(size));
    announce(block, block);
    free_by_helper(&first, block);
    free_by_helper(&second, block);
    end_helper(&first);
    end_helper(&second);
}

const struct misuse_case thread_cases[] = {
    {"double_first_in_another_thread", double_first_in_another_thread},
    {"double_second_in_another_thread", double_second_in_another_thread},
    {"double_in_two_threads", double_in_two_threads},
    {"double_in_two_live_threads", double_in_two_live_threads},
    {NULL, NULL},
};
