/* The functions under test, as the program sees them.
 *
 * Normally these are the plain names, bound by the linker to the library like any program's. In
 * a build with a sanitizer the sanitizer's own allocator has those names, so there the functions
 * are looked up in the library itself. The fuzzer links the library's objects under other names,
 * which hold in any build: it defines ENTRIES_LINKED. */
#include "stress.h"

#include <malloc.h>
#include <stdlib.h>

#include "../behaviour/jemalloc.h"

/* C23 names that older headers lack. */
extern void free_sized(void *block, size_t size);
extern void free_aligned_sized(void *block, size_t alignment, size_t size);

#if defined(ENTRIES_LINKED)
#elif defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define BEHIND_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define BEHIND_SANITIZER 1
#endif
#endif

#ifdef BEHIND_SANITIZER
#include <dlfcn.h>
#include <errno.h>

static void *library;
static struct entries entries;

/* The library's own would call the sanitizer's realloc and free: they go by these names. */

static void *reallocarray_of_library(void *block, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return entries.realloc(block, total);
}

static void free_sized_of_library(void *block, size_t size)
{
    (void)size;
    entries.free(block);
}

static void free_aligned_sized_of_library(void *block, size_t alignment, size_t size)
{
    (void)alignment, (void)size;
    entries.free(block);
}

/* Writes the address of the library's `name` to the function pointer at `place`. */
static void look_up(void *place, const char *name)
{
    void *found = dlsym(library, name);

    if (found == NULL) {
        fprintf(stderr, "stress: the library has no %s\n", name);
        exit(2);
    }
    __builtin_memcpy(place, &found, sizeof(found));
}

const struct entries *entries_of_library(void)
{
    const char *(*known)(void) = hakmem_version;
    void *address;
    Dl_info where;

    __builtin_memcpy(&address, &known, sizeof(address));
    if (dladdr(address, &where) == 0 ||
        (library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) == NULL) {
        fputs("stress: hakmem is not loaded as a shared library\n", stderr);
        exit(2);
    }
    look_up(&entries.malloc, "malloc");
    look_up(&entries.calloc, "calloc");
    look_up(&entries.realloc, "realloc");
    look_up(&entries.free, "free");
    look_up(&entries.aligned_alloc, "aligned_alloc");
    look_up(&entries.memalign, "memalign");
    look_up(&entries.posix_memalign, "posix_memalign");
    look_up(&entries.valloc, "valloc");
    look_up(&entries.malloc_usable_size, "malloc_usable_size");
    look_up(&entries.malloc_trim, "malloc_trim");
    look_up(&entries.mallocx, "mallocx");
    look_up(&entries.rallocx, "rallocx");
    look_up(&entries.xallocx, "xallocx");
    look_up(&entries.sallocx, "sallocx");
    look_up(&entries.dallocx, "dallocx");
    look_up(&entries.sdallocx, "sdallocx");
    look_up(&entries.nallocx, "nallocx");
    entries.reallocarray = reallocarray_of_library;
    entries.free_sized = free_sized_of_library;
    entries.free_aligned_sized = free_aligned_sized_of_library;
    return &entries;
}
#else
const struct entries *entries_of_library(void)
{
    static const struct entries entries = {
        .malloc = malloc,
        .calloc = calloc,
        .realloc = realloc,
        .reallocarray = reallocarray,
        .free = free,
        .free_sized = free_sized,
        .free_aligned_sized = free_aligned_sized,
        .aligned_alloc = aligned_alloc,
        .memalign = memalign,
        .posix_memalign = posix_memalign,
        .valloc = valloc,
        .malloc_usable_size = malloc_usable_size,
        .malloc_trim = malloc_trim,
        .mallocx = mallocx,
        .rallocx = rallocx,
        .xallocx = xallocx,
        .sallocx = sallocx,
        .dallocx = dallocx,
        .sdallocx = sdallocx,
        .nallocx = nallocx,
    };

    return &entries;
}
#endif
