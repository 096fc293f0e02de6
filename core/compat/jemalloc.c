/* jemalloc's calls for blocks, for programs that are built for it; its queries and settings are in
 * mallctl.c, sdallocx in override/libc.c.
 *
 * Without them, a program that is preloaded with hakmem and linked with jemalloc would get blocks
 * from jemalloc and give them to hakmem's free. In `flags`, alignment, zeroing and, in a library
 * with scopes, arenas count: an arena is a scope. The bits of thread caches are ignored.
 *
 * A size of 0, undefined in jemalloc, counts as 1.
 */
#include <string.h>

#include "api/alloc.h"
#include "base/sparse.h"
#include "os/os.h"
#include "override/override.h"
#include "report/report.h"
#include "scope/scope.h"

enum { FLAGS_ALIGNMENT = 0x3f, FLAGS_ZERO = 0x40, FLAGS_ARENA_SHIFT = 20 };
#define FLAGS_ARENA (SCOPES ? ~0U << FLAGS_ARENA_SHIFT : 0)

static size_t alignment_of(int flags)
{
    return (size_t)1 << (flags & FLAGS_ALIGNMENT);
}

EXPORT size_t nallocx(size_t size, int flags)
{
    size_t alignment = alignment_of(flags);
    bool impossible = size > SIZE_LIMIT - PAGE_SIZE || alignment > SIZE_LIMIT;
    return impossible ? 0 : alloc_good_size(size, alignment);
}

EXPORT size_t sallocx(const void *block, int flags)
{
    (void)flags;
    return alloc_usable_size(block, "sallocx");
}

/* Zeroes a block from `from` to its usable size, where a later rallocx goes on. Guarded blocks and
 * those of the hardened library end at any byte. */
static void *clear_beyond(void *block, size_t from)
{
    size_t usable = block ? alloc_usable_size(block, "mallocx") : 0;
    if (usable <= from)
        return block;
    size_t rest = usable - from, words = round_down(rest, sizeof(uint64_t));
    sparse_clear((char *)block + from, words);
    memset((char *)block + from + words, 0, rest - words);
    return block;
}

/* Serves from the arena of the flags, which may be that outside of scopes. */
static void *take_from_arena(void *block, size_t size, int flags)
{
    size_t arena = ((unsigned)flags >> FLAGS_ARENA_SHIFT) - 1;
    return scope_take(scope_of_arena(arena), block, size, alignment_of(flags));
}

static SLOW_PATH void *alloc_with_flags(size_t size, int flags)
{
    if ((unsigned)flags & FLAGS_ARENA)
        return clear_beyond(take_from_arena(NULL, size, flags), flags & FLAGS_ZERO ? 0 : SIZE_MAX);
    if (!(flags & FLAGS_ZERO))
        return alloc_aligned(size, alignment_of(flags));
    size = size_max(size, nallocx(size, flags));
    return clear_beyond(alloc_aligned_zeroed(size, alignment_of(flags)), size);
}

EXPORT void *mallocx(size_t size, int flags)
{
    if (UNLIKELY((unsigned)flags & (FLAGS_ALIGNMENT | FLAGS_ZERO | FLAGS_ARENA)))
        return alloc_with_flags(size, flags);
    return alloc(size);
}

EXPORT void *rallocx(void *block, size_t size, int flags)
{
    size_t before = flags & FLAGS_ZERO ? alloc_usable_size(block, "rallocx") : SIZE_MAX;
    size = size_max(size, 1);
    void *moved = (unsigned)flags & FLAGS_ARENA
                      ? take_from_arena(block, size, flags)
                      : alloc_resize_aligned(block, size, alignment_of(flags));
    return clear_beyond(moved, before);
}

EXPORT size_t xallocx(void *block, size_t size, size_t extra, int flags)
{
    size_t most = extra < SIZE_MAX - size ? size + extra : size;
    size_t before = alloc_usable_size(block, "xallocx");
    size_t usable = alloc_resize_in_place(block, most);
    if (usable < size)
        usable = alloc_resize_in_place(block, size);
    if (flags & FLAGS_ZERO)
        clear_beyond(block, before);
    return usable;
}

EXPORT void dallocx(void *block, int flags)
{
    (void)flags;
    release(block);
}

struct sink {
    void (*write)(void *argument, const char *text);
    void *argument;
};

static bool pass_on(void *to, const char *report, size_t length)
{
    const struct sink *sink = to;
    if (!sink->write)
        return os_write_quietly(STDERR, report, length);
    sink->write(sink->argument, report);
    return true;
}

/* Hakmem's report in one piece, as JSON if `options` has a J; other letters leave out parts that it
 * does not have. If `write` is NULL, it goes to standard error. */
EXPORT void malloc_stats_print(
    void (*write)(void *argument, const char *text), void *argument, const char *options)
{
    struct sink sink = {write, argument};
    bool json = options && strchr(options, 'J');
    report_make(json ? report_json : report_table, pass_on, &sink);
}
