/* What a call in a scope costs does not grow with the threads that stay in it, or in others. */
#include "scope_support.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { CROWD = 300, PIECES = 30, PAIRS = 1000 };

static pthread_barrier_t all_stay;

static void *stay(void *scope)
{
    void *blocks[100];
    CHECK(hakmem_scope_enter(scope) == 0);
    for (int i = 0; i < 100; i++)
        CHECK((blocks[i] = malloc(64)) != NULL);
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
    pthread_barrier_wait(&all_stay);
    pause();
    return NULL;
}

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The quickest piece, in ns a pair. */
static double pair_ns(struct hakmem_scope *scope)
{
    double best = 1e9;
    for (int piece = 0; piece < PIECES; piece++) {
        double begin = now_ns();
        for (int i = 0; i < PAIRS; i++)
            free(hakmem_scope_malloc(scope, 64));
        double took = (now_ns() - begin) / PAIRS;
        best = took < best ? took : best;
    }
    return best;
}

int main(void)
{
    struct hakmem_scope *shared = make_scope("shared", 0), *quiet = make_scope("quiet", 0);
    double alone = pair_ns(quiet);
    CHECK(pthread_barrier_init(&all_stay, NULL, CROWD + 1) == 0);
    for (int i = 0; i < CROWD; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, stay, i % 2 ? shared : make_scope("own", 0)) == 0);
    }
    pthread_barrier_wait(&all_stay);
    double beside = pair_ns(quiet), among = pair_ns(shared);
    fprintf(stderr, "%.0f ns alone, %.0f beside a crowd, %.0f among it\n", alone, beside, among);
    CHECK(beside <= 3 * alone + 100 && among <= 3 * alone + 100);
    return 0;
}
