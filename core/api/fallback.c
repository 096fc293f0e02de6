/* See fallback.h. */
#include "api/fallback.h"

#include <dlfcn.h>

#include "api/environment.h"
#include "base/atomic.h"
#include "os/symbol.h"

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void (*free)(void *);
    size_t (*malloc_usable_size)(void *);
} libc; /* const after fallback_init */

static uint64_t calls; /* atomic relaxed, any thread */

static void count(void)
{
    if (environment_wants_stats())
        ATOMIC_ADD_RELAXED(&calls, 1);
}

static bool look_up(void *function, const char *name)
{
    return symbol_find(RTLD_NEXT, function, name);
}

bool fallback_init(void)
{
    return look_up(&libc.malloc, "malloc") && look_up(&libc.calloc, "calloc") &&
           look_up(&libc.realloc, "realloc") && look_up(&libc.aligned_alloc, "aligned_alloc") &&
           look_up(&libc.free, "free") && look_up(&libc.malloc_usable_size, "malloc_usable_size");
}

void *libc_malloc(size_t size)
{
    count();
    return libc.malloc(size);
}

void *libc_calloc(size_t amount, size_t size)
{
    count();
    return libc.calloc(amount, size);
}

void *libc_realloc(void *block, size_t size)
{
    count();
    return libc.realloc(block, size);
}

/* musl's memalign calls aligned_alloc by its name, which is ours. */
void *libc_memalign(size_t alignment, size_t size)
{
    count();
    return libc.aligned_alloc(alignment, size);
}

void libc_free(void *block)
{
    count();
    libc.free(block);
}

size_t libc_usable_size(const void *block)
{
    return libc.malloc_usable_size((void *)block);
}

uint64_t fallback_calls(void)
{
    return ATOMIC_LOAD_RELAXED(&calls);
}
