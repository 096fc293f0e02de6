/* What single refusals of the system must not cost, where random schedules would seldom notice
 * (behaviours 13 and 39).
 */
#include <errno.h>

#include <hakmem/hakmem.h>

#include "runtime_support.h"
#include "schedule.h"

enum { BLOCKS = 8192, BLOCK_BYTES = 1024, KEPT_EVERY = 64, CPU_SECONDS_MAX = 60 };

static void *block[BLOCKS];

/* Pages inside slabs that are partly in use, which the system would not take, go back as soon as
 * it does. */
static void refused_pages_go_back_later(void)
{
    static const struct schedule schedule = {SCHEDULE_EVER, OS_MADVISE, 1};
    for (unsigned i = 0; i < BLOCKS; i++) {
        block[i] = malloc(BLOCK_BYTES);
        REQUIRE(block[i]);
        pattern_fill(block[i], BLOCK_BYTES, i);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        if (i % KEPT_EVERY)
            free(block[i]);
    schedule_start(&schedule);
    hakmem_purge();
    schedule_stop();
    REQUIRE(schedule_failures() > 0);
    long before_kib = resident_kib();
    hakmem_purge();
    REQUIRE(before_kib - resident_kib() > BLOCKS * BLOCK_BYTES / 1024 / 2);
    for (unsigned i = 0; i < BLOCKS; i += KEPT_EVERY) {
        REQUIRE(pattern_holds(block[i], BLOCK_BYTES, i));
        free(block[i]);
    }
}

/* Where not even a short block is left, a long one that shall become short stays as it is. */
static void shrinking_never_fails(void)
{
    static const struct schedule schedule = {SCHEDULE_EVER, OS_MMAP, 1};
    enum { LONG_BYTES = 20000, SHORT_BYTES = 64 };
    void *list = NULL, **link;
    unsigned char *shrinking = malloc(LONG_BYTES);
    REQUIRE(shrinking);
    pattern_fill(shrinking, LONG_BYTES, 5);
    schedule_start(&schedule);
    while ((link = malloc(SHORT_BYTES)) != NULL) {
        *link = list;
        list = link;
    }
    REQUIRE(errno == ENOMEM);
    errno = 4242;
    unsigned char *shrunk = realloc(shrinking, SHORT_BYTES);
    REQUIRE(shrunk && errno == 4242 && shrunk[0] == 5);
    schedule_stop();
    free(shrunk);
    while (list) {
        link = *(void **)list;
        free(list);
        list = link;
    }
}

int main(void)
{
    const struct rlimit cpu = {CPU_SECONDS_MAX, CPU_SECONDS_MAX};
    REQUIRE(setrlimit(RLIMIT_CPU, &cpu) == 0);
    refused_pages_go_back_later();
    shrinking_never_fails();
    return 0;
}
