/* A program that is built for jemalloc and linked with it, as others are: behaviour 57.
 *
 *     runtime_jemalloc_main libhakmem.so|libjemalloc.so
 *
 * The argument is the library that all its calls have to reach, the plain ones and jemalloc's own.
 * What it asks for then holds under both.
 */
#include "runtime_support.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>

#include "jemalloc.h"

static void comes_from(const char *library, const char *name)
{
    Dl_info info;
    void *function = dlsym(RTLD_DEFAULT, name);
    if (!function || !dladdr(function, &info) || !strstr(info.dli_fname, library)) {
        dprintf(2, "%s is not from %s\n", name, library);
        _exit(1);
    }
}

static bool is_filled(const unsigned char *bytes, size_t count, unsigned char byte)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != byte)
            return false;
    return true;
}

static void blocks(size_t size)
{
    REQUIRE(nallocx(size, 0) >= size);
    unsigned char *block = mallocx(size, MALLOCX_ALIGN(4096) | MALLOCX_ZERO);
    REQUIRE(block && (uintptr_t)block % 4096 == 0);
    size_t real = sallocx(block, 0);
    REQUIRE(real >= size && real == malloc_usable_size(block) && is_filled(block, real, 0));
    memset(block, 7, real);
    block = rallocx(block, size * 2, MALLOCX_ALIGN(4096) | MALLOCX_ZERO | MALLOCX_TCACHE_NONE);
    REQUIRE(block && (uintptr_t)block % 4096 == 0);
    size_t longer = sallocx(block, 0), kept = real < size * 2 ? real : size * 2;
    REQUIRE(longer >= size * 2 && is_filled(block, kept, 7));
    REQUIRE(longer <= real || is_filled(block + real, longer - real, 0));
    size_t now = xallocx(block, size * 2, 100, 0);
    REQUIRE(now == sallocx(block, 0) && now >= size * 2);
    now = xallocx(block, size, 0, 0);
    REQUIRE(
        now == sallocx(block, 0) && now >= size && is_filled(block, size < kept ? size : kept, 7));
    sdallocx(block, sallocx(block, 0), 0);
    free(mallocx(size, 0));
    dallocx(malloc(size), 0);
    dallocx(rallocx(calloc(1, size), size + 100, 0), MALLOCX_TCACHE_NONE);
    free(realloc(mallocx(size, MALLOCX_ZERO), size * 3));
}

static void *blocks_of_all_sizes(void *argument)
{
    for (size_t size = 1; size < 6000000; size += 1 + size / 2)
        blocks(size);
    return argument;
}

static size_t figure(const char *name)
{
    size_t value = 0, length = sizeof value;
    REQUIRE(mallctl(name, &value, &length, NULL, 0) == 0);
    return value;
}

static void advance_epoch(void)
{
    uint64_t epoch = 1, before = 0;
    size_t length = sizeof epoch;
    REQUIRE(mallctl("epoch", &before, &length, NULL, 0) == 0);
    REQUIRE(mallctl("epoch", &epoch, &length, &epoch, sizeof epoch) == 0);
    REQUIRE(epoch == before + 1);
}

static void figures(void)
{
    enum { BYTES = 50 << 20 };
    advance_epoch();
    size_t before = figure("stats.allocated");
    void *block = memset(malloc(BYTES), 1, BYTES);
    advance_epoch();
    size_t with = figure("stats.allocated"), active = figure("stats.active");
    REQUIRE(with >= before + BYTES && active >= with);
    REQUIRE(figure("stats.mapped") > active && figure("stats.resident") >= active);
    free(block);
    advance_epoch();
    REQUIRE(figure("stats.allocated") < before + BYTES / 10);
}

static void errors(void)
{
    uint64_t value = 0;
    size_t length = 3, mib[4], parts = 4;
    REQUIRE(mallctl("no.such.name", NULL, NULL, NULL, 0) == ENOENT);
    REQUIRE(mallctl("version", NULL, NULL, &value, sizeof value) == EPERM);
    REQUIRE(mallctl("epoch", &value, &length, NULL, 0) == EINVAL);
    REQUIRE(mallctl("epoch", NULL, NULL, &value, 3) == EINVAL);
    REQUIRE(mallctlnametomib("no.such.name", mib, &parts) == ENOENT);
    length = sizeof value;
    REQUIRE(mallctl("thread.tcache.flush", &value, &length, NULL, 0) == EPERM);
    REQUIRE(mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0);
}

/* All arenas, by the number of an arena put into what stands for the name. */
static void purges(void)
{
    size_t mib[3], parts = 3;
    REQUIRE(mallctlnametomib("arena.0.purge", mib, &parts) == 0 && parts == 3 && mib[1] == 0);
    mib[1] = 4096;
    REQUIRE(mallctlbymib(mib, parts, NULL, NULL, NULL, 0) == 0);
    REQUIRE(mallctl("arena.4096.purge", NULL, NULL, NULL, 0) == 0);
}

static size_t reported;

static void count(void *argument, const char *text)
{
    REQUIRE(argument == &reported);
    reported += strlen(text);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {
        "malloc",
        "free",
        "mallocx",
        "rallocx",
        "xallocx",
        "sallocx",
        "dallocx",
        "nallocx",
        "sdallocx",
        "mallctl",
        "mallctlbymib",
        "mallctlnametomib",
        "malloc_stats_print"};
    pthread_t threads[4];
    REQUIRE(argc == 2);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        comes_from(argv[1], names[i]);
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&threads[i], NULL, blocks_of_all_sizes, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    figures();
    errors();
    purges();
    malloc_stats_print(count, &reported, NULL);
    REQUIRE(reported > 500);
    return 0;
}
