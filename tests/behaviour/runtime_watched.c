/* A library that registers memory with a device puts jumps at the start of the C library's munmap,
 * madvise and mremap to learn what goes (behaviour 58). Freed memory that went without a word
 * stays registered: the device would read pages that are no longer the program's.
 *
 * usage: runtime_watched told|early|locking|allocating|wrapped
 *
 * told: each page of freed blocks that is gone was covered by such a call.
 * early: the same, with jumps that a constructor has put there.
 * locking: the library holds a lock while it calls malloc, and takes it in the jumps, as it may
 * where malloc gives nothing back. Two threads.
 * allocating: it calls malloc and free in the jumps.
 * wrapped: instead, a preloaded library (runtime_watched_lib.c) has functions of these names, which
 * take a lock and allocate. The C library's malloc does not call them, and so nor may another.
 */
#include "runtime_support.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>

#include <hakmem/hakmem.h>

enum { KIB = 1024, TOLD_BYTES = 24 * KIB * KIB, PAGES_MAX = 32 * KIB, CALLS_MAX = 64 * KIB };

/* ---- The library ------------------------------------------------------------------------------
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool takes_lock, allocates;
static atomic_ulong calls;

/* The addresses that calls have told of while `told_max` is not 0. */
static struct {
    uintptr_t from, to;
} told[CALLS_MAX];
static size_t told_count, told_max;
static size_t page_size;

/* Called by malloc and free as often as these give memory back, so that it has to end. */
static void allocate_inside(void)
{
    static __thread uint32_t seed;
    static __thread unsigned inside;
    if (inside >= 3)
        return;
    inside++;
    for (int i = 0; i < 4; i++) {
        size_t size = random_next(&seed) % 8 ? random_size(&seed) : 3000000;
        char *block = malloc(size);
        REQUIRE(block);
        block[0] = block[size - 1] = 1;
        free(block);
    }
    inside--;
}

static void goes(void *address, size_t size)
{
    calls++;
    if (takes_lock)
        REQUIRE(pthread_mutex_lock(&lock) == 0);
    if (told_max) {
        REQUIRE(told_count < told_max);
        told[told_count].from = (uintptr_t)address;
        told[told_count++].to = (uintptr_t)address + size;
    }
    if (takes_lock)
        pthread_mutex_unlock(&lock);
    if (allocates)
        allocate_inside();
}

static int watch_munmap(void *address, size_t size)
{
    goes(address, size);
    return (int)syscall(SYS_munmap, address, size);
}

static int watch_madvise(void *address, size_t size, int advice)
{
    if (advice == MADV_DONTNEED || advice == MADV_FREE)
        goes(address, size);
    return (int)syscall(SYS_madvise, address, size, advice);
}

static void *watch_mremap(void *address, size_t before, size_t after, int flags, void *target)
{
    goes(address, before);
    return (void *)syscall(SYS_mremap, address, before, after, flags, target);
}

static void jump(const char *name, uintptr_t target)
{
    char *function = dlsym(RTLD_DEFAULT, name);
#if defined(__x86_64__)
    /* mov target, %rax; jmp *%rax */
    unsigned char code[12] = {0x48, 0xb8, [10] = 0xff, 0xe0};
    memcpy(code + 2, &target, sizeof target);
#elif defined(__riscv)
    /* auipc t0, 0; ld t0, 16(t0); jr t0; nop; target */
    uint32_t code[6] = {0x00000297, 0x0102b283, 0x00028067, 0x00000013};
    memcpy(code + 4, &target, sizeof target);
#else
    /* ldr x17, target; br x17; target */
    uint32_t code[4] = {0x58000051, 0xd61f0220};
    memcpy(code + 2, &target, sizeof target);
#endif
    uintptr_t start = (uintptr_t)function & -page_size;
    REQUIRE(syscall(SYS_mprotect, start, 2 * page_size, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    memcpy(function, code, sizeof code);
    __builtin___clear_cache(function, function + sizeof code);
}

static void put_jumps(void)
{
    page_size = (size_t)sysconf(_SC_PAGESIZE);
    jump("munmap", (uintptr_t)watch_munmap);
    jump("madvise", (uintptr_t)watch_madvise);
    jump("mremap", (uintptr_t)watch_mremap);
}

/* ---- The program ------------------------------------------------------------------------------
 */

static void be_busy(double seconds)
{
    void *blocks[64];
    uint32_t seed = 1;
    for (double until = seconds_now() + seconds; seconds_now() < until;) {
        for (int i = 0; i < 64; i++)
            blocks[i] = malloc(100 + random_next(&seed) % 3000);
        for (int i = 0; i < 64; i++)
            free(blocks[i]);
        usleep(1000);
    }
}

static bool is_gone(uintptr_t page)
{
    unsigned char resident = 0;
    return mincore((void *)page, page_size, &resident) != 0 || !(resident & 1);
}

static bool is_told(uintptr_t page)
{
    for (size_t i = 0; i < told_count; i++)
        if (page >= told[i].from && page < told[i].to)
            return true;
    return false;
}

/* Blocks of `size` bytes, 24 MiB in all, are filled and freed. */
static void check_told(size_t size, bool grow)
{
    size_t count = TOLD_BYTES / size, before = 0, gone = 0, silent = 0;
    char **blocks = malloc(count * sizeof *blocks);
    static uintptr_t pages[PAGES_MAX];
    for (size_t i = 0; i < count; i++) {
        blocks[i] = malloc(size);
        memset(blocks[i], 1, size);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t at = 0; at < size; at += page_size) {
            uintptr_t page = ((uintptr_t)blocks[i] + at) & -page_size;
            if (before == 0 || page != pages[before - 1]) {
                REQUIRE(before < PAGES_MAX);
                pages[before++] = page;
            }
        }
    told_count = 0;
    told_max = CALLS_MAX;
    for (size_t i = 0; i < count; i++)
        free(grow ? realloc(blocks[i], 2 * size) : blocks[i]);
    be_busy(0.4); /* eight times the delay */
    malloc_trim(0);
    for (size_t i = 0; i < before; i++) {
        bool lost = is_gone(pages[i]);
        gone += lost;
        silent += lost && !is_told(pages[i]);
    }
    told_max = 0;
    free(blocks);
    printf("%zu bytes: %zu of %zu pages are gone, %zu in silence\n", size, gone, before, silent);
    REQUIRE(gone > before / 4 && silent == 0);
}

static void check_all(void)
{
    check_told(2000, false);
    check_told(20000, false);
    check_told(65536, false);
    check_told(300000, false);
    check_told(3000000, false);
    check_told(3000000, true);
}

/* A library at work: what it calls under its lock gives nothing back. */
static void *register_and_forget(void *seed_of_thread)
{
    enum { ENTRIES = 64 };
    void *entries[ENTRIES] = {0};
    uint32_t seed = (uint32_t)(uintptr_t)seed_of_thread;
    for (double until = seconds_now() + 3; seconds_now() < until;) {
        for (int i = 0; i < ENTRIES; i++) {
            free(entries[i]);
            size_t size = random_next(&seed) % 16 ? random_size(&seed) : 2500000;
            pthread_mutex_lock(&lock);
            entries[i] = i % 4 ? malloc(size) : calloc(1, size);
            pthread_mutex_unlock(&lock);
            REQUIRE(entries[i]);
            memset(entries[i], 1, size);
        }
        usleep(500);
    }
    for (int i = 0; i < ENTRIES; i++)
        free(entries[i]);
    return NULL;
}

static void run_threads(void *(*work)(void *))
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, work, (void *)7) == 0);
    work((void *)11);
    pthread_join(thread, NULL);
}

/* Defined in the preloaded library. */
__attribute__((weak)) void wrapper_use(void *(*work)(void *), void *argument);
__attribute__((weak)) unsigned long wrapper_calls(void);

static void *use_wrapper(void *argument)
{
    wrapper_use(register_and_forget, argument);
    return NULL;
}

static bool early;

__attribute__((constructor)) static void start(int argc, char **argv)
{
    early = argc == 2 && strcmp(argv[1], "early") == 0;
    if (early)
        put_jumps();
}

int main(int argc, char **argv)
{
    const char *mode = argc == 2 ? argv[1] : "";
    watchdog(HANG_SECONDS, mode);
    REQUIRE(hakmem_option_set("purge_delay_ms", 50) == 0);
    if (strcmp(mode, "wrapped") == 0) {
        REQUIRE(wrapper_use && wrapper_calls);
        run_threads(use_wrapper);
        printf("%lu calls of the wrapper\n", wrapper_calls());
        return 0;
    }
    pthread_mutexattr_t checked;
    pthread_mutexattr_init(&checked);
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&lock, &checked);
    if (!early)
        put_jumps();
    takes_lock = strcmp(mode, "locking") == 0;
    allocates = strcmp(mode, "allocating") == 0;
    if (takes_lock || allocates)
        run_threads(register_and_forget);
    else
        check_all();
    printf("%lu calls\n", (unsigned long)calls);
    REQUIRE(calls > 0);
    return 0;
}
