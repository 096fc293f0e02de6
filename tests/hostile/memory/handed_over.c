/* Decoders make blocks of random lengths and write them, sinks free them: each block goes to
 * another thread, and few wait in between. Whoever limits what such a program may have, it needs
 * little.
 *
 * usage: handed_over none|addresses|data LIMIT_MIB PAIRS LOW HIGH WAITING MESSAGES
 *
 *     none        no limit but the one that the program was started under
 *     addresses   RLIMIT_AS
 *     data        RLIMIT_DATA, which counts private writable memory
 *
 * PAIRS decoders and as many sinks share one queue of WAITING blocks, through which MESSAGES go.
 *
 * figures: live_mib   most bytes that can have been live: those that wait, and one of each thread
 *          peak_mib   most that was resident
 *          refused    mallocs that returned NULL, each tried again a moment later
 *          message_us processor time of a message
 */
#include "hostile.h"

enum { PAIRS_MAX = 16, WAITING_MAX = 256 };

static size_t pairs, low, high, waiting_max, messages;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char *waiting[WAITING_MAX];
static size_t waiting_count, made, refused;

/* NULL when enough were made. */
static char *make(size_t size)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        bool enough = made == messages;
        made += !enough;
        pthread_mutex_unlock(&lock);
        if (enough) {
            return NULL;
        }
        char *block = malloc(size);
        if (block) {
            return memset(block, 1, size);
        }
        pthread_mutex_lock(&lock);
        refused++;
        pthread_mutex_unlock(&lock);
        sleep_ms(1);
    }
}

static void *decode(void *number)
{
    char *block;
    random_state += (uintptr_t)number * 7919;
    while ((block = make(random_between(low, high))) != NULL) {
        pthread_mutex_lock(&lock);
        while (waiting_count == waiting_max) {
            pthread_cond_wait(&changed, &lock);
        }
        waiting[waiting_count++] = block;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* Ends at the first block that is NULL. */
static void *sink(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        while (waiting_count == 0) {
            pthread_cond_wait(&changed, &lock);
        }
        char *block = waiting[--waiting_count];
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        if (!block) {
            return unused;
        }
        free(block);
    }
}

static void end_sinks(pthread_t *sinks)
{
    for (size_t i = 0; i < pairs; i++) {
        pthread_mutex_lock(&lock);
        while (waiting_count == waiting_max) {
            pthread_cond_wait(&changed, &lock);
        }
        waiting[waiting_count++] = NULL;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    for (size_t i = 0; i < pairs; i++) {
        REQUIRE(pthread_join(sinks[i], NULL) == 0);
    }
}

int main(int argc, char **argv)
{
    pthread_t decoders[PAIRS_MAX], sinks[PAIRS_MAX];
    pairs = argument(argc, argv, 3);
    low = argument(argc, argv, 4);
    high = argument(argc, argv, 5);
    waiting_max = argument(argc, argv, 6);
    messages = argument(argc, argv, 7);
    REQUIRE(pairs <= PAIRS_MAX && waiting_max <= WAITING_MAX);
    watch("blocks that pass from thread to thread");
    limit_resource(argv[1], argument(argc, argv, 2));
    double before = cpu_s();
    for (size_t i = 0; i < pairs; i++) {
        start_thread(&sinks[i], sink, NULL, 64 * KIB);
        start_thread(&decoders[i], decode, (void *)i, 64 * KIB);
    }
    for (size_t i = 0; i < pairs; i++) {
        REQUIRE(pthread_join(decoders[i], NULL) == 0);
    }
    end_sinks(sinks);
    figure("live_mib", (double)((waiting_max + 2 * pairs) * high) / (double)MIB);
    figure("peak_mib", peak_resident_mib());
    figure("refused", (double)refused);
    figure("message_us", (cpu_s() - before) * 1e6 / (double)messages);
    conclude();
    return 0;
}
