/* See large.h. */
#include "hardened/large.h"

#include <string.h>

#include "base/assert.h"
#include "base/poison.h"
#include "hardened/bytes.h"
#include "hardened/fence.h"
#include "hardened/quarantine.h"
#include "hardened/word.h"
#include "os/fatal.h"
#include "os/os.h"
#include "slab/bin.h"

/* Open pages that may lie before a block: it begins in the first unit of its slab. */
static const size_t slack_max = UNIT_SIZE / 2;

/* The slab's last page stays closed. */
unsigned large_class(size_t size, size_t alignment)
{
    if (size > LARGE_MAX || alignment > LARGE_MAX)
        return CLASS_NONE;
    size_t page = os_page_size(), bytes = round_up(size_max(size, 1), page) + page;
    return bytes > LARGE_MAX ? (unsigned)CLASS_NONE : size_class_single(bytes);
}

static char *start_of(const struct slab *slab)
{
    return (char *)round_down((uintptr_t)slab->base, UNIT_SIZE);
}

/* Distances from the slab's start: to the end of a block of that size, and of its open pages. */
static size_t end_of(const struct slab *slab, size_t size)
{
    return (size_t)(slab->base - start_of(slab)) + size_max(size, 1);
}

static size_t open_end(const struct slab *slab, size_t size)
{
    return round_up(end_of(slab, size), os_page_size());
}

static size_t slab_end(const struct slab *slab)
{
    return size_classes[slab->size_class].size;
}

/* Bytes from the slab's start that are open and zero while its block is free. While it is live: 0,
 * or, if the system refused to close pages behind it, the end of those. In the place of the secret,
 * which a block without a canary does not need. The block's owner only. */
static uint64_t *left_open(const struct slab *slab)
{
    return slab_secret((struct slab *)slab);
}

/* Aborts, naming `call`, if somebody has written to the open pages. */
static void check_open_pages(const struct slab *slab, const char *call)
{
    size_t open = *left_open(slab);
    unpoison(start_of(slab), open);
    if (open && UNLIKELY(!bytes_are_zero(start_of(slab), open)))
        fatal_pointer(call, DEFECT_WRITTEN, slab->base, NULL, 0);
}

bool large_renew(struct slab *slab)
{
    enum fence fence = slab->superslab->fence;
    size_t bytes = slab_end(slab);
    if (fence_close_again(fence, slab->base, bytes))
        return true;
    *left_open(slab) = bytes;
    return fence_open(fence, slab->base, bytes);
}

enum { MANY = 8 };

/* Blocks opened less blocks freed since, up to 2 * MANY, roughly. Atomic relaxed, any thread. */
static uint32_t openings;

static void count_opening(void)
{
    uint32_t opened = ATOMIC_LOAD_RELAXED(&openings);
    if (opened < 2 * MANY)
        ATOMIC_STORE_RELAXED(&openings, opened + 1);
}

void *large_open(struct slab *slab, size_t size, size_t alignment)
{
    size_t page = os_page_size(), length = round_up(size_max(size, 1), page);
    alignment = size_max(alignment, MIN_ALIGNMENT);
    size_t offset = alignment > page ? 0 : length - round_up(size_max(size, 1), alignment);
    enum fence fence = slab->superslab->fence;
    char *start = start_of(slab);
    size_t open = *left_open(slab);
    check_open_pages(slab, "malloc");
    if (length > open && !fence_open(fence, start + open, length - open))
        return NULL;
    /* At the end of the open pages, so that blocks of other lengths cost no system calls. */
    bool at_end = length < open && open - length <= slack_max && open < slab_end(slab);
    if (at_end && alignment <= page) {
        offset += open - length;
        *left_open(slab) = 0;
    } else if (length >= open || fence_close(fence, start + length, open - length)) {
        *left_open(slab) = 0;
    }
    count_opening();
    return slab->base = start + offset;
}

bool large_is_whole(const struct slab *slab, size_t size)
{
    const char *start = start_of(slab);
    size_t before = (size_t)(slab->base - start);
    return (before == 0 || bytes_are_zero(start, before)) &&
           bytes_rest_is_zero(start + end_of(slab, size), start + open_end(slab, size));
}

bool large_resize(struct slab *slab, size_t before, size_t size)
{
    enum fence fence = slab->superslab->fence;
    size_t open = open_end(slab, before), wanted = open_end(slab, size);
    char *start = start_of(slab);
    if (wanted > slab_end(slab) - os_page_size())
        return false;
    if (wanted > open) {
        size_t opened = size_max(open, size_min(wanted, *left_open(slab)));
        bytes_clear(start + open, opened - open);
        return wanted == opened || fence_open(fence, start + opened, wanted - opened);
    }
    if (size < before)
        memset(start + end_of(slab, size), 0, wanted - end_of(slab, size));
    /* Includes pages that could not be closed before. */
    size_t left = size_max(open, *left_open(slab));
    if (wanted < open)
        *left_open(slab) = fence_close(fence, start + wanted, left - wanted) ? 0 : left;
    return true;
}

bool large_close(const struct slab *slab)
{
    enum fence fence = slab->superslab->fence;
    size_t open = *left_open(slab);
    check_open_pages(slab, "free");
    return fence != FENCE_NONE && (!open || fence_close(fence, start_of(slab), open));
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Gives the block back to its bin. */
static void send_home(void *waiting)
{
    struct slab *slab = waiting;
    /* So that the whole slab is poisoned, and nothing of the next one. */
    if (HAKMEM_SANITIZE_ADDRESS)
        slab->base = start_of(slab);
    void *block = slab->base;
    bin_flush(slab->shard, slab->size_class, &block, 1);
}

/* Checks the block now: it will have no next owner. */
static void look_and_send_home(void *waiting)
{
    check_open_pages(waiting, "free");
    send_home(waiting);
}

static size_t large_addresses(const void *waiting)
{
    return slab_end(waiting);
}

static size_t memory_of(const void *waiting)
{
    return *left_open(waiting);
}

static struct quarantine_queue closed_queue, open_queue;
static const struct quarantine closed_quarantine = {
    &closed_queue, 64 * MIB, large_addresses, send_home, 0};
static const struct quarantine open_quarantine = {&open_queue, 1 * MIB, memory_of, send_home, 0};
static const struct quarantine last_quarantine = {&open_queue, 0, memory_of, look_and_send_home, 0};

/* True if many blocks were freed in this tick of the clock or the last one, and others opened: a
 * program that only frees needs no cleared blocks. */
static bool is_burst(void)
{
    enum { TICK_MS = 10 };
    static uint64_t tick_ms; /* atomic relaxed, any thread, as is the next */
    static uint32_t frees;
    uint32_t opened = ATOMIC_LOAD_RELAXED(&openings);
    if (!opened)
        return false;
    ATOMIC_STORE_RELAXED(&openings, opened - 1);
    uint64_t now = os_clock_ms(), before = ATOMIC_LOAD_RELAXED(&tick_ms);
    if (now != before) {
        bool went_on = now - before <= TICK_MS && ATOMIC_LOAD_RELAXED(&frees) >= 2 * MANY;
        ATOMIC_STORE_RELAXED(&tick_ms, now);
        ATOMIC_STORE_RELAXED(&frees, went_on ? MANY : 0);
    }
    return ATOMIC_ADD_RELAXED(&frees, 1) >= MANY;
}

void large_release(void)
{
    quarantine_release(&closed_quarantine, 0);
    quarantine_release(&open_quarantine, 0);
}

void large_look(void)
{
    quarantine_release(&last_quarantine, 0);
}

static unsigned waiting_blocks; /* seen by the walker */

/* The block is not live, and not in its bin. */
static void check_waiting_large(const void *waiting)
{
    const struct slab *slab = waiting;
    ASSERT(size_class_is_single(slab->size_class));
    ASSERT(slab->attached && !bitmap_test(slab->free, 0));
    ASSERT(word_state(ATOMIC_LOAD_RELAXED(slab_word((struct slab *)slab, 0))) == WORD_FREED);
    ASSERT(*left_open(slab) <= slab_end(slab));
    (void)slab; /* only asserted on */
    waiting_blocks++;
}

unsigned large_check(void)
{
    waiting_blocks = 0;
    quarantine_check(&closed_quarantine, check_waiting_large);
    quarantine_check(&open_quarantine, check_waiting_large);
    return waiting_blocks;
}

void large_end(struct slab *slab, size_t size)
{
    /* Most programs use little of longer blocks, so reading the whole would cost more. Compressors
     * take some hundred KiB at a time and use most of it. */
    static const size_t cleared_max = 512 * KIB;
    char *start = start_of(slab);
    enum fence fence = slab->superslab->fence;
    size_t open = size_max(open_end(slab, size), *left_open(slab));
    if (open <= cleared_max && is_burst()) {
        bytes_clear(start, open);
        *left_open(slab) = open;
        quarantine_put(&open_quarantine, slab);
        return;
    }
    /* Without a fence the block gives its memory up all the same, unless the system refuses.
     * Checking more than a page of it later would cost a fault a page. */
    bool empty = fence == FENCE_NONE && os_purge(start, open);
    bool closed = !empty && fence_close(fence, start, open);
    *left_open(slab) = closed ? 0 : empty ? os_page_size() : open;
    /* Blocks that still have their memory wait in the queue bounded in memory. */
    quarantine_put(closed || empty ? &closed_quarantine : &open_quarantine, slab);
}
