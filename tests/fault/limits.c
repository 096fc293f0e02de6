/* A threaded program to be run with little memory: what cannot be had is refused with ENOMEM,
 * everything else works, and so does everything after (behaviours 37, 38 and 40). Prints "done".
 *
 * usage: fault_limits addresses     under a limit on address space, which is used up
 *        fault_limits commitment    under some rule of overcommitment
 *        fault_limits memory MIB    memory in use never exceeds so much: for a control group
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "runtime_support.h"

enum { THREADS = 6, SLOTS = 100 };

#define MIB ((size_t)1 << 20)

static void *thread_main(void *argument)
{
    uint32_t seed = (uint32_t)(uintptr_t)argument + 1;
    void *slots[SLOTS] = {NULL};
    size_t sizes[SLOTS];
    for (unsigned round = 0; round < 20000; round++) {
        unsigned at = random_next(&seed) % SLOTS;
        if (slots[at]) {
            REQUIRE(pattern_holds(slots[at], sizes[at], at));
            free(slots[at]);
        }
        sizes[at] = random_size(&seed) % 20000;
        slots[at] = malloc(sizes[at]);
        REQUIRE(slots[at]);
        pattern_fill(slots[at], sizes[at], at);
    }
    for (unsigned at = 0; at < SLOTS; at++)
        free(slots[at]);
    return NULL;
}

static void use_threads(void)
{
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, MIB) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], &attributes, thread_main, (void *)i) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    pthread_attr_destroy(&attributes);
}

/* Takes blocks of `size` until refused or `most` bytes are reached; returns bytes, all freed again.
 * `touch`: writes to every page of them. */
static size_t take_all(size_t size, size_t most, bool touch)
{
    void *list = NULL;
    size_t taken = 0;
    while (taken + size <= most) {
        errno = 0;
        void **block = malloc(size);
        if (!block) {
            REQUIRE(errno == ENOMEM);
            break;
        }
        if (touch)
            pattern_fill(block, size, 1);
        *block = list;
        list = block;
        taken += size;
    }
    while (list) {
        void *next = *(void **)list;
        free(list);
        list = next;
    }
    return taken;
}

static const size_t sizes[] = {64,     1000,    8000,          30000,         200000,
                               700000, 1 << 20, 3 * (1 << 20), 20 * (1 << 20)};

enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void say_shortfall(size_t got, size_t size, size_t least)
{
    fprintf(stderr, "%zu MiB in blocks of %zu, not %zu\n", got / MIB, size, least / MIB);
    exit(1);
}

/* Most of the addresses must be usable, whatever the size of the blocks, and what was used for one
 * size must be usable for the next. Much memory is not touched for this: with a high limit the
 * short blocks, whose links alone touch all, are left out. */
static void exhaust_addresses(void)
{
    struct rlimit limit;
    /* There a block of 1 MiB ends before a closed page, and shares 2 MiB with no other one. */
    bool hardened = is_hardened();
    REQUIRE(getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY);
    size_t free_bytes = limit.rlim_cur - (size_t)mapped_kib() * 1024;
    size_t shortest = limit.rlim_cur > 512 * MIB ? MIB : 0;
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < SIZES; i++) {
            size_t most = free_bytes / sizes[i] * sizes[i];
            /* Aligned to 2 MiB, 3 MiB take 4; blocks that the thread caches keep some superslabs;
             * and what is left may be just too little for one more. */
            size_t share = hardened ? free_bytes / 8 * 3 : free_bytes / 2;
            size_t least = share > 2 * sizes[i] ? share - 2 * sizes[i] : 0;
            if (sizes[i] < shortest)
                continue;
            size_t got = take_all(sizes[i], most, false);
            if (got < least)
                say_shortfall(got, sizes[i], least);
        }
}

/* No system has so many addresses, even one that promises memory to everybody. */
static void ask_for_too_much(size_t possible)
{
    errno = 0;
    REQUIRE(malloc((size_t)1 << 47) == NULL && errno == ENOMEM);
    errno = 0;
    REQUIRE(calloc((size_t)1 << 24, (size_t)1 << 23) == NULL && errno == ENOMEM);
    char *block = malloc(possible);
    REQUIRE(block);
    pattern_fill(block, possible, 4);
    errno = 0;
    REQUIRE(realloc(block, (size_t)1 << 47) == NULL && errno == ENOMEM);
    REQUIRE(pattern_holds(block, possible, 4));
    free(block);
}

/* Nine sixteenths of the memory in blocks of one size, then of the next: what is free has to go
 * back to the system in time. Beside 40 MiB in use up to 27 more were seen, of sizes that the next
 * ones have no use for. */
static void use_memory_in_turn(size_t memory)
{
    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < SIZES; i++) {
            size_t most = memory / 16 * 9;
            size_t got = take_all(sizes[i], most, true);
            if (got + sizes[i] <= most)
                say_shortfall(got, sizes[i], most);
        }
}

/* How soon memory goes back depends on the clock: now and then, a hundredth more was seen. */
static void check_peak(size_t memory)
{
    struct rusage usage;
    REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
    if ((size_t)usage.ru_maxrss > memory / 1024 / 32 * 33) {
        fprintf(stderr, "peak of %ld KiB, not %zu\n", usage.ru_maxrss, memory / 1024);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    size_t memory = argc == 3 ? strtoull(argv[2], NULL, 10) * MIB : 0;
    size_t possible = 10 * MIB;
    watchdog(HANG_SECONDS, "little memory");
    use_threads();
    if (strcmp(kind, "addresses") == 0 && argc == 2) {
        exhaust_addresses();
    } else if (strcmp(kind, "memory") == 0 && memory) {
        use_memory_in_turn(memory);
    } else if (strcmp(kind, "commitment") == 0 && argc == 2) {
        possible = 100 * MIB;
    } else {
        say("usage: fault_limits addresses|commitment|memory MIB\n");
        return 2;
    }
    ask_for_too_much(possible);
    use_threads();
    if (memory)
        check_peak(memory);
    puts("done");
    return 0;
}
