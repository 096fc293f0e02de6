/* How programs speak to jemalloc, as far as it is about memory that goes back.
 *
 * A program that is built for jemalloc tells it, after it has dropped much, to purge its arenas,
 * and asks it for figures now and then; redis does the first after FLUSHALL and the second ten
 * times a second, while it makes no call of malloc at all. With another malloc loaded before
 * jemalloc, all this reaches an allocator that serves nobody. So the name is taken here: a wish to
 * purge is granted, and every call is a slow path, which looks after what lies idle. The rest is
 * for the jemalloc behind, if there is one.
 *
 * In the shared library only: in a static program nothing lies behind.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "hakmem/hakmem.h"
#include "override/override.h"
#include "thread/heap.h"

/* Absent from some C libraries' static programs, as in api/fallback.c. */
#pragma weak dlsym

typedef int mallctl_function(const char *, void *, size_t *, void *, size_t);

/* "arena.NUMBER.purge" and "arena.NUMBER.decay"; some number of an arena stands for all. */
static bool asks_for_purge(const char *name)
{
    static const char prefix[] = "arena.";
    if (!name || strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    name += strlen(prefix);
    while (*name >= '0' && *name <= '9')
        name++;
    return strcmp(name, ".purge") == 0 || strcmp(name, ".decay") == 0;
}

EXPORT int mallctl(const char *name, void *old, size_t *old_length, void *new, size_t new_length)
{
    bool purge = asks_for_purge(name);
    struct heap *heap = heap_enter();
    if (heap)
        heap_leave(heap);
    if (purge)
        hakmem_purge();
    /* POSIX has data and function pointers of one size; ISO C needs the detour. */
    mallctl_function *behind = NULL;
    *(void **)&behind = dlsym ? dlsym(RTLD_NEXT, "mallctl") : NULL;
    if (behind)
        return behind(name, old, old_length, new, new_length);
    return purge ? 0 : ENOENT;
}
