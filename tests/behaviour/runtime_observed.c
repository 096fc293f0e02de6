/* A thread that reads the events of a userfaultfd allocates itself, while others register blocks
 * and free them (behaviour 60). What waits for an event waits for that thread: so it may not give
 * observed memory back.
 */
#include "runtime_support.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <hakmem/hakmem.h>

enum { KIB = 1024, WORKERS = 3, KEPT = 100 };

static int observer;
static atomic_bool stop;
static atomic_long events, observed;

static void *read_events(void *unused)
{
    static void *entries[64];
    uint32_t seed = 99;
    while (!stop) {
        struct pollfd ready = {observer, POLLIN, 0};
        struct uffd_msg event;
        if (poll(&ready, 1, 100) <= 0 || read(observer, &event, sizeof event) != sizeof event)
            continue;
        events++;
        for (int i = 0; i < 20; i++) {
            unsigned at = random_next(&seed) % 64;
            free(entries[at]);
            size_t size = (size_t)48 << random_next(&seed) % 14;
            entries[at] = malloc(size);
            memset(entries[at], 1, size);
        }
    }
    return unused;
}

static void observe(char *block, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)block + page - 1) & -page,
              end = ((uintptr_t)block + size) & -page;
    struct uffdio_register range = {{first, end - first}, UFFDIO_REGISTER_MODE_WP, 0};
    if (end > first && ioctl(observer, UFFDIO_REGISTER, &range) == 0)
        observed++;
}

static void *work(void *number)
{
    char *blocks[KEPT] = {0};
    uint32_t seed = (uint32_t)(uintptr_t)number;
    for (double until = seconds_now() + 4; seconds_now() < until;) {
        unsigned at = random_next(&seed) % KEPT;
        free(blocks[at]);
        size_t size = 4 * KIB + random_next(&seed) % (random_next(&seed) % 8 ? 200000 : 6000000);
        blocks[at] = malloc(size);
        memset(blocks[at], 1, size);
        if (random_next(&seed) % 4 == 0)
            observe(blocks[at], size);
    }
    for (unsigned at = 0; at < KEPT; at++)
        free(blocks[at]);
    return NULL;
}

int main(void)
{
    watchdog(HANG_SECONDS, "observed");
    REQUIRE(hakmem_option_set("purge_delay_ms", 20) == 0);
    observer = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    struct uffdio_api api = {
        UFFD_API,
        UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP |
            UFFD_FEATURE_PAGEFAULT_FLAG_WP,
        0};
    if (observer < 0 || ioctl(observer, UFFDIO_API, &api) != 0) {
        say("skipped: no userfaultfd for this user\n");
        return RUNTIME_SKIPPED;
    }
    pthread_t reader, workers[WORKERS];
    REQUIRE(pthread_create(&reader, NULL, read_events, NULL) == 0);
    for (uintptr_t i = 0; i < WORKERS; i++)
        REQUIRE(pthread_create(&workers[i], NULL, work, (void *)(i + 1)) == 0);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    stop = true;
    pthread_join(reader, NULL);
    printf("%ld ranges, %ld events\n", (long)observed, (long)events);
    REQUIRE(observed > 0);
    close(observer);
    return 0;
}
