/* The limit on the number of mappings is exhausted: an allocation works or returns NULL, a free
 * works and keeps errno even where the kernel refuses to split a mapping, and once there is room
 * again nothing is lost (behaviours 14 and 38).
 */
#include "runtime_support.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

#define BIG_BLOCKS 48
#define BIG_BYTES ((size_t)3 << 20)
#define SMALL_BLOCKS 20000
#define ATTEMPTS 4000

static char *filler;
static size_t filler_bytes;

static size_t mapping_limit(void)
{
    char text[32] = {0};
    int file = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    return length <= 0 ? 0 : strtoul(text, NULL, 10);
}

/* Every second page gets another protection, so that each page is a mapping of its own. Returns
 * whether the kernel refused at last. */
static bool exhaust_mappings(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    filler_bytes = (mapping_limit() + 100) * page;
    filler =
        mmap(NULL, filler_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(filler != MAP_FAILED);
    for (size_t at = page; at < filler_bytes; at += 2 * page) {
        if (mprotect(filler + at, page, PROT_NONE) != 0) {
            return errno == ENOMEM;
        }
    }
    return false;
}

static void *big[BIG_BLOCKS];
static void *small[SMALL_BLOCKS];

static void free_keeping_errno(void *block)
{
    errno = 4242;
    free(block);
    REQUIRE(errno == 4242);
}

/* Returns how many of the attempts were served. */
static unsigned try_everything(void)
{
    unsigned served = 0;
    uint32_t seed = 13;
    void *kept[200] = {NULL};
    for (unsigned round = 0; round < ATTEMPTS; round++) {
        unsigned at = round % 200;
        size_t size = random_size(&seed);
        free_keeping_errno(kept[at]);
        errno = 0;
        kept[at] = round % 5 == 0   ? calloc(1, size)
                   : round % 5 == 1 ? memalign((size_t)64 << round % 12, size)
                                    : malloc(size);
        if (kept[at] == NULL) {
            REQUIRE(errno == ENOMEM);
            continue;
        }
        pattern_fill(kept[at], size, round);
        served++;
        void *grown = realloc(kept[at], size + size / 2 + 1);
        if (grown != NULL) {
            kept[at] = grown;
        } else {
            REQUIRE(errno == ENOMEM);
        }
        REQUIRE(pattern_holds(kept[at], size, round));
    }
    for (unsigned at = 0; at < 200; at++) {
        free_keeping_errno(kept[at]);
    }
    return served;
}

static void *thread_main(void *argument)
{
    unsigned *served = argument;
    *served = try_everything();
    return NULL;
}

static void allocate_all(void)
{
    for (unsigned i = 0; i < BIG_BLOCKS; i++) {
        big[i] = malloc(BIG_BYTES + i * 4096);
        REQUIRE(big[i] != NULL);
        pattern_fill(big[i], BIG_BYTES, i);
    }
    for (unsigned i = 0; i < SMALL_BLOCKS; i++) {
        small[i] = malloc(500);
        REQUIRE(small[i] != NULL);
    }
}

/* Every second first: their mappings have neighbours on both sides. */
static void free_all(void)
{
    for (unsigned start = 0; start < 2; start++) {
        for (unsigned i = start; i < BIG_BLOCKS; i += 2) {
            REQUIRE(pattern_holds(big[i], BIG_BYTES, i));
            free_keeping_errno(big[i]);
        }
        for (unsigned i = start; i < SMALL_BLOCKS; i += 2) {
            free_keeping_errno(small[i]);
        }
        malloc_trim(0);
        (void)hakmem_purge();
    }
}

/* Everything at once, here and in a thread. Returns how much of it was served here. */
static unsigned use_everything(void)
{
    unsigned served_in_thread;
    pthread_t thread;
    /* A thread needs mappings for its stack; one that cannot be had is no fault of ours. */
    int created = pthread_create(&thread, NULL, thread_main, &served_in_thread);
    unsigned served = try_everything();
    if (created == 0) {
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
    return served;
}

static void exhaust_and_recover(void)
{
    allocate_all();
    REQUIRE(use_everything() == ATTEMPTS);
    free_all();
    long mapped = mapped_kib();
    allocate_all();
    bool exhausted = exhaust_mappings();
    REQUIRE(exhausted);
    unsigned served = use_everything();
    free_all();
    guard_step();
    /* Sizes from slabs that exist already do not need the kernel. */
    REQUIRE(served > 0);
    REQUIRE(munmap(filler, filler_bytes) == 0);
    guard_step();
    allocate_all();
    REQUIRE(use_everything() == ATTEMPTS);
    free_all();
    REQUIRE(mapped_kib() - mapped < 16 * 1024 + hardened_kib(HARDENED_WAITING_KIB));
}

/* behaviour 38 */
static void test_mappings_exhausted(void **state)
{
    (void)state;
    size_t limit = mapping_limit();
    if (limit == 0 || limit > 300000) {
        print_message("skipped: vm.max_map_count is %zu\n", limit);
        skip();
    }
    assert_int_equal(run_guarded(exhaust_and_recover, HANG_SECONDS), 0);
}

int main(void)
{
    (void)hakmem_version();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mappings_exhausted),
    };
    return cmocka_run_group_tests_name("runtime_maps", tests, NULL, NULL);
}
