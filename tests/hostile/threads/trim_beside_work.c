/* Threads work in short spells and sleep in between, while another one trims the heap all the time,
 * asks for statistics and lets threads come and go: what it takes away from those who sleep, or
 * just seem to, must not be what they hand out next.
 *
 * usage: trim_beside_work THREADS SECONDS
 */
#include "hostile.h"

#include <stdatomic.h>

enum { BLOCKS = 300 };

static atomic_bool stop;

static void spell(uintptr_t id, uintptr_t **blocks)
{
    size_t rounds = random_between(1, 3000);
    for (size_t i = 0; i < rounds; i++) {
        size_t at = random_between(0, BLOCKS - 1), kind = random_next() % 100;
        if (blocks[at]) {
            REQUIRE(blocks[at][0] == id && blocks[at][1] == (uintptr_t)blocks[at]);
            free(blocks[at]);
        }
        blocks[at] = allocate(random_between(16, kind < 90 ? 600 : 30000));
        blocks[at][0] = id;
        blocks[at][1] = (uintptr_t)blocks[at];
    }
}

static void *work_and_sleep(void *number)
{
    uintptr_t *blocks[BLOCKS] = {NULL}, id = (uintptr_t)number;
    random_state += id * 7919;
    while (!atomic_load(&stop)) {
        spell(id, blocks);
        struct timespec nap = {.tv_nsec = (long)random_between(0, 3000000)};
        nanosleep(&nap, NULL);
    }
    for (size_t at = 0; at < BLOCKS; at++) {
        REQUIRE(!blocks[at] || blocks[at][0] == id);
        free(blocks[at]);
    }
    return NULL;
}

static void *pass(void *number)
{
    uintptr_t *blocks[BLOCKS] = {NULL};
    spell((uintptr_t)number, blocks);
    for (size_t at = 0; at < BLOCKS; at++) {
        free(blocks[at]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[64], passing;
    size_t count = argument(argc, argv, 1);
    double end = wall_s() + (double)argument(argc, argv, 2);
    REQUIRE(count <= 64);
    watch("trimming beside work");
    for (uintptr_t i = 0; i < count; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, work_and_sleep, (void *)(i + 1)) == 0);
    }
    while (wall_s() < end) {
        malloc_trim(0);
        REQUIRE(mallinfo2().uordblks > 0);
        REQUIRE(pthread_create(&passing, NULL, pass, (void *)(uintptr_t)1000) == 0);
        REQUIRE(pthread_join(passing, NULL) == 0);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    conclude();
    return 0;
}
