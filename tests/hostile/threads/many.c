/* Many threads live at once, each of which has allocated; then some more come and go, one by one,
 * while those live and again after they have ended. A new thread must cost the same however many
 * there are or were.
 *
 * usage: many THREADS
 * figures: start_us        processor time to start one of the threads
 *          beside_us       to start and end one beside them
 *          after_us        after they have ended
 *          rss_mib         resident memory while they live
 *          mappings        of the process then
 *          ended_mib       after they have ended
 */
#include "hostile.h"

#include <sched.h>
#include <semaphore.h>

enum { PASSING = 1000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sem_t started;
static bool may_end;

static void *live(void *unused)
{
    char *block = allocate(40);
    block[0] = 1;
    sem_post(&started);
    pthread_mutex_lock(&mutex);
    while (!may_end) {
        pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    free(block);
    return unused;
}

static void *pass(void *unused)
{
    char *block = allocate(40);
    block[0] = 1;
    free(block);
    return unused;
}

static double passing_us(void)
{
    double start = cpu_s();
    for (int i = 0; i < PASSING; i++) {
        pthread_t thread;
        start_thread(&thread, pass, NULL, 32 * KIB);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
    return (cpu_s() - start) / PASSING * 1e6;
}

/* To wake an idle CPU costs ten times as much as the rest: all threads stay on this one. */
static void stay_on_this_cpu(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
}

int main(int argc, char **argv)
{
    size_t count = argument(argc, argv, 1);
    stay_on_this_cpu();
    pthread_t *threads = allocate(count * sizeof *threads);
    REQUIRE(sem_init(&started, 0, 0) == 0);
    watch("starting threads");
    double start = cpu_s();
    for (size_t i = 0; i < count; i++) {
        start_thread(&threads[i], live, NULL, 32 * KIB);
        /* One at a time: all of them on the condition variable would be its cost, not malloc's. */
        REQUIRE(sem_wait(&started) == 0);
    }
    figure("start_us", (cpu_s() - start) / (double)count * 1e6);
    figure("rss_mib", resident_mib());
    figure("mappings", mapping_count());
    figure("beside_us", passing_us());
    pthread_mutex_lock(&mutex);
    may_end = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    figure("ended_mib", resident_mib());
    figure("after_us", passing_us());
    free(threads);
    conclude();
    return 0;
}
