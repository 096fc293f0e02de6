/* The C library's names: malloc and its family, glibc's second names for them, and the functions
 * that tune and describe the heap. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/alloc.h"
#include "api/environment.h"
#include "api/perturb.h"
#include "base/pressure.h"
#include "hakmem/hakmem.h"
#include "os/os.h"
#include "override/override.h"
#include "report/report.h"
#include "report/stats.h"
#include "thread/heap.h"

/* ---- Allocation ------------------------------------------------------------------------------ */

EXPORT HOT_ENTRY void *malloc(size_t size)
{
    return alloc(size);
}

extern ALIAS_OF(malloc) __attribute__((visibility("hidden"))) void *own_malloc(size_t size);

/* To the compiler the two may be one, but the linker fills in the program's malloc here. */
bool override_serves(void)
{
    static void *(*const volatile of_program)(size_t) = malloc;
    return of_program == own_malloc;
}

/* Asks the system all that the first call needs: a program may forbid questions before that, also
 * in a constructor without a number. */
__attribute__((constructor(65534))) static void start(void)
{
    struct heap *heap = override_serves() ? heap_enter() : NULL;
    if (heap)
        heap_leave(heap);
}

EXPORT HOT_ENTRY void free(void *block)
{
    release(block);
}

EXPORT void *calloc(size_t count, size_t size)
{
    return alloc_zeroed(count, size);
}

EXPORT void *realloc(void *block, size_t size)
{
    return alloc_resize(block, size);
}

/* ---- Aligned allocation ---------------------------------------------------------------------- */

/* Gives a function that does not end in a jump a frame pointer: see trace/unwind.c. */
#define KEEP_FRAME() __asm__ volatile("" ::"r"(__builtin_frame_address(0)))

EXPORT void *memalign(size_t alignment, size_t size)
{
    if (alignment > SIZE_MAX / 2 + 1) {
        errno = EINVAL;
        return NULL;
    }
    size_t power = MIN_ALIGNMENT;
    while (power < alignment)
        power *= 2;
    return alloc_aligned(size, power);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    return alloc_aligned(size, alignment);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t size)
{
    if (!is_power_of_two(alignment) || alignment % sizeof(void *))
        return EINVAL;
    KEEP_FRAME();
    void *result = alloc_aligned(size, alignment);
    if (!result)
        return ENOMEM;
    *block = result;
    return 0;
}

EXPORT void *valloc(size_t size)
{
    return alloc_aligned(size, os_page_size());
}

EXPORT void *pvalloc(size_t size)
{
    size_t page = os_page_size();
    if (size > SIZE_LIMIT - page) {
        errno = ENOMEM;
        return NULL;
    }
    return alloc_aligned(round_up(size, page), page);
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

EXPORT size_t malloc_usable_size(void *block)
{
    return alloc_usable_size(block, "malloc_usable_size");
}

EXPORT size_t malloc_good_size(size_t size)
{
    return alloc_good_size(size, MIN_ALIGNMENT);
}

/* Names and meaning are hardened_malloc's. */
EXPORT size_t malloc_object_size(const void *address)
{
    return alloc_object_size(address);
}

EXPORT size_t malloc_object_size_fast(const void *address)
{
    return alloc_object_size_fast(address);
}

/* The size is not checked: it may be the usable one, which programs ask jemalloc for. */
EXPORT void sdallocx(void *block, size_t size, int flags)
{
    (void)size;
    (void)flags;
    release(block);
}

/* ---- Other names for the same ---------------------------------------------------------------- */

EXPORT ALIAS_OF(free) void cfree(void *block);
EXPORT ALIAS_OF(malloc) void *__libc_malloc(size_t size);
EXPORT ALIAS_OF(free) void __libc_free(void *block);
EXPORT ALIAS_OF(calloc) void *__libc_calloc(size_t count, size_t size);
EXPORT ALIAS_OF(realloc) void *__libc_realloc(void *block, size_t size);
EXPORT ALIAS_OF(memalign) void *__libc_memalign(size_t alignment, size_t size);
EXPORT ALIAS_OF(valloc) void *__libc_valloc(size_t size);
EXPORT ALIAS_OF(pvalloc) void *__libc_pvalloc(size_t size);
EXPORT ALIAS_OF(posix_memalign)
int __posix_memalign(void **block, size_t alignment, size_t size);

/* ---- Tuning and description ------------------------------------------------------------------ */

/* Answers as glibc does: 1 for parameters that it knows, 0 for values that it refuses. Most
 * parameters concern things that hakmem does not have, and change nothing. */
EXPORT int mallopt(int parameter, int value)
{
    enum { MXFAST_MAX = 160 };
    switch (parameter) {
    case M_TRIM_THRESHOLD:
        pressure_set_kept_bytes(value < 0 ? SIZE_MAX : (size_t)value);
        return 1;
    case M_PERTURB:
        perturb_set(value);
        return 1;
    case M_MXFAST:
        return value >= 0 && value <= MXFAST_MAX;
    case M_MMAP_THRESHOLD:
    case M_NLBLKS:
    case M_GRAIN:
    case M_KEEP:
    case M_TOP_PAD:
    case M_MMAP_MAX:
    case M_CHECK_ACTION:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
        return 1;
    default:
        return 0;
    }
}

EXPORT int malloc_trim(size_t pad)
{
    (void)pad;
    return hakmem_purge() != 0;
}

EXPORT void malloc_stats(void)
{
    report_print(STDERR);
}

EXPORT int malloc_info(int options, FILE *stream)
{
    enum { CAPACITY = 16 * 1024 };
    struct text text;
    if (options != 0)
        return EINVAL;
    char *buffer = alloc(CAPACITY);
    if (!buffer)
        return ENOMEM;
    text_init(&text, buffer, CAPACITY);
    report_xml(&text);
    int result = fputs(text_terminate(&text), stream) < 0 ? EIO : 0;
    release(buffer);
    return result;
}

EXPORT struct mallinfo2 mallinfo2(void)
{
    struct snapshot now;
    stats_collect(&now);
    const struct hakmem_usage *big = &now.tier[HAKMEM_TIER_BIG];
    struct mallinfo2 info = {0};
    info.hblks = big->live_blocks;
    info.hblkhd = big->live_bytes;
    info.uordblks = stats_arena_live(&now);
    info.arena = stats_arena(&now);
    info.fordblks = stats_arena_free(&now);
    info.ordblks = now.total.cached_blocks;
    info.keepcost = now.total.retained_bytes;
    return info;
}

static int clamp_to_int(size_t value)
{
    return value > INT32_MAX ? INT32_MAX : (int)value;
}

EXPORT struct mallinfo mallinfo(void)
{
    struct mallinfo2 wide = mallinfo2();
    struct mallinfo info = {0};
    info.arena = clamp_to_int(wide.arena);
    info.ordblks = clamp_to_int(wide.ordblks);
    info.hblks = clamp_to_int(wide.hblks);
    info.hblkhd = clamp_to_int(wide.hblkhd);
    info.uordblks = clamp_to_int(wide.uordblks);
    info.fordblks = clamp_to_int(wide.fordblks);
    info.keepcost = clamp_to_int(wide.keepcost);
    return info;
}
