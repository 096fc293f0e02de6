/* See fallback.h. */
#include "api/fallback.h"

#include <dlfcn.h>
#include <string.h>

#include "api/environment.h"
#include "base/atomic.h"
#include "map/size_class.h"
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

static void count_call(void)
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

/* Not by memalign: musl's calls aligned_alloc by name, which is ours. */
void *libc_alloc(size_t size, size_t alignment, bool zero)
{
    count_call();
    if (alignment <= MIN_ALIGNMENT)
        return zero ? libc.calloc(1, size) : libc.malloc(size);
    void *block = libc.aligned_alloc(alignment, size);
    return zero && block ? memset(block, 0, size) : block;
}

void *libc_realloc(void *block, size_t size)
{
    count_call();
    return libc.realloc(block, size);
}

void libc_free(void *block)
{
    count_call();
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
