/* Broken allocators: each passes calls on to the library and does one thing wrong now and then.
 *
 * Thread rule: the state below is guarded by `lock`, so that the faults that run with several
 * threads are wrong in one way only. A process plants one fault at most. */
#include "faults.h"

#include <errno.h>
#include <string.h>

enum { HEALTHY_CALLS = 3000 /* before a fault begins, so that it meets a heap in full use */ };

static const struct entries *real;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned calls;     /* lock */
static uint8_t *marked;    /* lock: a live block that the fault is about */
static size_t marked_size; /* lock */
static uint8_t *second;    /* lock: the block that overlaps `marked` */

void faults_begin(const struct entries *entries)
{
    real = entries;
}

/* Counts a call; true from the time on when the fault may show. */
static bool due(void)
{
    bool result;

    pthread_mutex_lock(&lock);
    result = ++calls > HEALTHY_CALLS;
    pthread_mutex_unlock(&lock);
    return result;
}

/* Called before a block may go away. */
static void forget(void *block)
{
    pthread_mutex_lock(&lock);
    if (block == marked)
        marked = NULL;
    pthread_mutex_unlock(&lock);
}

static void forgetting_free(void *block)
{
    forget(block);
    real->free(block);
}

static void forgetting_free_sized(void *block, size_t size)
{
    forget(block);
    real->free_sized(block, size);
}

static void forgetting_free_aligned_sized(void *block, size_t align, size_t size)
{
    forget(block);
    real->free_aligned_sized(block, align, size);
}

static void *forgetting_realloc(void *block, size_t size)
{
    forget(block);
    return real->realloc(block, size);
}

static void *forgetting_reallocarray(void *block, size_t count, size_t size)
{
    forget(block);
    return real->reallocarray(block, count, size);
}

static void *forgetting_rallocx(void *block, size_t size, int flags)
{
    forget(block);
    return real->rallocx(block, size, flags);
}

static size_t forgetting_xallocx(void *block, size_t size, size_t extra, int flags)
{
    forget(block);
    return real->xallocx(block, size, extra, flags);
}

static void forgetting_dallocx(void *block, int flags)
{
    forget(block);
    real->dallocx(block, flags);
}

static void forgetting_sdallocx(void *block, size_t size, int flags)
{
    forget(block);
    real->sdallocx(block, size, flags);
}

static void forget_when_freed(struct entries *entries)
{
    entries->rallocx = forgetting_rallocx;
    entries->xallocx = forgetting_xallocx;
    entries->dallocx = forgetting_dallocx;
    entries->sdallocx = forgetting_sdallocx;
    entries->free = forgetting_free;
    entries->free_sized = forgetting_free_sized;
    entries->free_aligned_sized = forgetting_free_aligned_sized;
    entries->realloc = forgetting_realloc;
    entries->reallocarray = forgetting_reallocarray;
}

/* Hands out the last block once more while it is live. */
static void *twice_malloc(size_t size)
{
    uint8_t *block;

    pthread_mutex_lock(&lock);
    if (++calls > HEALTHY_CALLS && marked != NULL && size <= marked_size) {
        block = marked;
    } else {
        block = marked = real->malloc(size);
        marked_size = size;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

static void plant_twice(struct entries *entries)
{
    entries->malloc = twice_malloc;
    forget_when_freed(entries);
}

/* Cuts two neighbours from one block, the second `shared` bytes before the end of the first. */
static void *cut_malloc(size_t size, size_t shared)
{
    size_t rounded = size < 32 ? 32 : (size + 15) & ~(size_t)15;

    if (!due())
        return real->malloc(size);
    if (marked != NULL && rounded <= marked_size) {
        second = marked + marked_size - shared;
        return second;
    }
    marked = real->malloc(2 * rounded);
    marked_size = rounded;
    return marked;
}

static void *overlapping_malloc(size_t size)
{
    return cut_malloc(size, 16);
}

static size_t overlapping_usable(void *block)
{
    return block == marked || block == second ? marked_size : real->malloc_usable_size(block);
}

static void plant_overlap(struct entries *entries)
{
    entries->malloc = overlapping_malloc;
    forget_when_freed(entries);
    entries->malloc_usable_size = overlapping_usable;
}

/* Promises bytes that belong to the neighbour. */
static void *adjacent_malloc(size_t size)
{
    return cut_malloc(size, 0);
}

static size_t large_usable(void *block)
{
    return overlapping_usable(block) + (block == marked ? 16 : 0);
}

static void plant_large_usable(struct entries *entries)
{
    entries->malloc = adjacent_malloc;
    forget_when_freed(entries);
    entries->malloc_usable_size = large_usable;
}

/* Hands out a small block in the middle of a large live one, between the words it carries. */
static void *inside_malloc(size_t size)
{
    if (marked != NULL && size <= 256) {
        second = marked + (marked_size / 2 & ~(size_t)15);
        return second;
    }
    if (marked != NULL || size < (size_t)1 << 20)
        return real->malloc(size);
    marked = real->malloc(size);
    marked_size = size;
    return marked;
}

static size_t inside_usable(void *block)
{
    return block == second ? 256 : real->malloc_usable_size(block);
}

static void plant_inside(struct entries *entries)
{
    entries->malloc = inside_malloc;
    forget_when_freed(entries);
    entries->malloc_usable_size = inside_usable;
}

/* Changes the last requested byte of a block that the caller owns. */
static void *stray_malloc(size_t size)
{
    if (due() && marked != NULL)
        marked[marked_size - 1] ^= 0x40;
    marked = real->malloc(size);
    marked_size = size;
    if (size == 0)
        marked = NULL;
    return marked != NULL ? marked : real->malloc(size);
}

static void plant_stray(struct entries *entries)
{
    entries->malloc = stray_malloc;
    forget_when_freed(entries);
}

static void *odd_malloc(size_t size)
{
    return due() ? (uint8_t *)real->malloc(size + 8) + 8 : real->malloc(size);
}

static void plant_odd(struct entries *entries)
{
    entries->malloc = odd_malloc;
}

static int misaligned_posix_memalign(void **place, size_t align, size_t size)
{
    int code = real->posix_memalign(place, align, size + 16);

    if (code == 0 && align > 16)
        *place = (uint8_t *)*place + 16;
    return code;
}

static void plant_misaligned(struct entries *entries)
{
    entries->posix_memalign = misaligned_posix_memalign;
}

static int failing_posix_memalign(void **place, size_t align, size_t size)
{
    (void)real->posix_memalign(place, align, size);
    return ENOMEM;
}

static void plant_code(struct entries *entries)
{
    entries->posix_memalign = failing_posix_memalign;
}

static void *dirty_calloc(size_t count, size_t size)
{
    uint8_t *block = real->calloc(count, size);

    if (count * size > 0 && due())
        block[count * size - 1] = 1;
    return block;
}

static void plant_dirty(struct entries *entries)
{
    entries->calloc = dirty_calloc;
}

/* Forgets to clear what was not fresh in the middle of a large block. */
static void *dirty_middle_calloc(size_t count, size_t size)
{
    uint8_t *block = real->calloc(count, size);

    if (count * size > 64 * 1024)
        memset(block + count * size / 2, 0xA5, 4096);
    return block;
}

static void plant_dirty_middle(struct entries *entries)
{
    entries->calloc = dirty_middle_calloc;
}

static void *lossy_realloc(void *block, size_t size)
{
    if (block == NULL || size == 0 || !due())
        return real->realloc(block, size);
    real->free(block);
    return real->calloc(1, size);
}

static void plant_lossy(struct entries *entries)
{
    entries->realloc = lossy_realloc;
}

/* Copies one byte too few when a small block gets smaller. */
static void *short_realloc(void *block, size_t size)
{
    size_t before = block != NULL ? real->malloc_usable_size(block) : 0;
    uint8_t *moved = real->realloc(block, size);

    if (size > 0 && size + 32 < before && before <= 256)
        moved[size - 1] ^= 0x01;
    return moved;
}

static void plant_short(struct entries *entries)
{
    entries->realloc = short_realloc;
}

/* Loses one page in the middle of a longer block. */
static void *page_losing_realloc(void *block, size_t size)
{
    size_t before = block != NULL ? real->malloc_usable_size(block) : 0;
    uint8_t *moved = real->realloc(block, size);

    if (size >= 16384 && before >= 32768)
        memset(moved + 8192, 0, 4096);
    return moved;
}

static void plant_page_loss(struct entries *entries)
{
    entries->realloc = page_losing_realloc;
}

static size_t small_usable(void *block)
{
    size_t usable = real->malloc_usable_size(block);

    return due() ? usable / 2 : usable;
}

static void plant_small_usable(struct entries *entries)
{
    entries->malloc_usable_size = small_usable;
}

static size_t changing_usable(void *block)
{
    size_t usable = real->malloc_usable_size(block);

    pthread_mutex_lock(&lock);
    if (block == marked)
        usable += 16;
    else if (++calls > HEALTHY_CALLS && (calls & 63) == 0)
        marked = block; /* told the truth now, another figure the next time */
    pthread_mutex_unlock(&lock);
    return usable;
}

static void plant_changing_usable(struct entries *entries)
{
    forget_when_freed(entries);
    entries->malloc_usable_size = changing_usable;
}

static void leaking_free(void *block)
{
    bool drop;

    pthread_mutex_lock(&lock);
    drop = ++calls == HEALTHY_CALLS;
    pthread_mutex_unlock(&lock);
    if (!drop)
        real->free(block);
}

static void plant_leak(struct entries *entries)
{
    entries->free = leaking_free;
}

static void *errno_malloc(size_t size)
{
    void *block = real->malloc(size);

    if (due())
        errno = ENOMEM;
    return block;
}

static void plant_errno(struct entries *entries)
{
    entries->malloc = errno_malloc;
}

static void errno_free(void *block)
{
    real->free(block);
    if (due())
        errno = EINVAL;
}

static void plant_free_errno(struct entries *entries)
{
    entries->free = errno_free;
}

static void *failing_malloc(size_t size)
{
    return due() ? NULL : real->malloc(size);
}

static void plant_null(struct entries *entries)
{
    entries->malloc = failing_malloc;
}

static void *undead_realloc(void *block, size_t size)
{
    return block != NULL && size == 0 ? real->malloc(1) : real->realloc(block, size);
}

static void plant_undead(struct entries *entries)
{
    entries->realloc = undead_realloc;
}

static void *misaligned_mallocx(size_t size, int flags)
{
    uint8_t *block = real->mallocx(size + 16, flags);

    return (flags & ~FLAG_ZERO) > 4 ? block + 16 : block;
}

static void plant_misaligned_flags(struct entries *entries)
{
    entries->mallocx = misaligned_mallocx;
}

static size_t boasting_nallocx(size_t size, int flags)
{
    return 2 * real->nallocx(size, flags);
}

static void plant_boast(struct entries *entries)
{
    entries->nallocx = boasting_nallocx;
}

/* Zeroes all that the block gains but the last byte, which often is beyond what was asked for. */
static void *sparing_rallocx(void *block, size_t size, int flags)
{
    size_t before = real->malloc_usable_size(block), after;
    uint8_t *resized = real->rallocx(block, size, flags);

    after = real->malloc_usable_size(resized);
    if (after > before)
        resized[after - 1] = 1;
    return resized;
}

static void plant_sparing(struct entries *entries)
{
    entries->rallocx = sparing_rallocx;
}

/* Tells what was wished for, whatever came of it. */
static size_t wishful_xallocx(void *block, size_t size, size_t extra, int flags)
{
    size_t usable = real->xallocx(block, size, extra, flags);

    return usable < size + extra ? size + extra : usable;
}

static void plant_wish(struct entries *entries)
{
    entries->xallocx = wishful_xallocx;
}

/* Zeroes from the size that was asked for before, not from the real one. */
static size_t clearing_xallocx(void *block, size_t size, size_t extra, int flags)
{
    size_t usable = real->xallocx(block, size, extra, flags);

    if ((flags & FLAG_ZERO) != 0 && usable >= size)
        memset(block, 0, size);
    return usable;
}

static void plant_clearing(struct entries *entries)
{
    entries->xallocx = clearing_xallocx;
}

const struct fault faults[] = {
    {"control, 1 thread", NULL, NULL, false, 1},
    {"control, 8 threads", NULL, NULL, false, 8},
    {"a live block handed out again", plant_twice, "blocks overlap", true, 1},
    {"a live block handed out again, 8 threads", plant_twice, "blocks overlap", true, 8},
    {"blocks that overlap by 16 bytes", plant_overlap, "blocks overlap: live block", true, 1},
    {"a small block inside a large one", plant_inside, "blocks overlap: live block", true, 1},
    {"a stray write into a live block", plant_stray, "contents changed while live", true, 1},
    {"malloc aligned to 8 only", plant_odd, "malloc: misaligned", true, 1},
    {"posix_memalign 16 bytes off", plant_misaligned, "posix_memalign: misaligned", true, 1},
    {"posix_memalign returns a code", plant_code, "posix_memalign: returned 12", true, 1},
    {"calloc with a dirty last byte", plant_dirty, "calloc: memory is not zero", true, 1},
    {"calloc with a dirty page", plant_dirty_middle, "calloc: memory is not zero", true, 1},
    {"realloc loses everything", plant_lossy, "contents lost by a resize", true, 1},
    {"realloc loses the last byte", plant_short, "contents lost by a resize", true, 1},
    {"realloc loses a page", plant_page_loss, "contents lost by a resize", true, 1},
    {"usable size below the request", plant_small_usable, "does not fit the request", true, 1},
    {"usable size reaches the neighbour", plant_large_usable, "blocks overlap", true, 1},
    {"usable size changes", plant_changing_usable, "usable size was", true, 1},
    {"a free that leaks, 1 thread", plant_leak, "drift: ", false, 1},
    {"a free that leaks, 8 threads", plant_leak, "census: ", false, 8},
    {"malloc changes errno", plant_errno, "malloc: errno changed", true, 1},
    {"free changes errno", plant_free_errno, "free: errno changed", true, 1},
    {"malloc returns NULL", plant_null, "malloc: returned NULL", true, 1},
    {"realloc to 0 returns a block", plant_undead, "to size 0 returned", true, 1},
    {"mallocx 16 bytes off", plant_misaligned_flags, "mallocx: misaligned", true, 1},
    {"nallocx tells too much", plant_boast, "nallocx told", true, 1},
    {"rallocx leaves dirt at the end", plant_sparing, "rallocx: memory is not zero", true, 1},
    {"xallocx tells a wish", plant_wish, "xallocx: usable size", true, 1},
    {"xallocx clears too much", plant_clearing, "xallocx: contents lost", true, 1},
    {"another allocator serves", plant_foreign, "not served by hakmem", false, 1},
};

const unsigned faults_count = sizeof(faults) / sizeof(faults[0]);
