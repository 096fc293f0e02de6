/* See span.h. */
#include "span/span.h"

#include <string.h>

#include "base/atomic.h"
#include "os/fatal.h"
#include "os/os.h"
#include "span/page_heap.h"

static struct span_stats totals; /* atomic relaxed, any thread */

static unsigned pages_of(size_t size)
{
    return (unsigned)((size + PAGE_SIZE - 1) >> PAGE_SHIFT);
}

/* Zeroes the pages of the run that were dirty when it was taken. */
static void zero_dirty_pages(const struct page_run *taken)
{
    unsigned end = taken->run.first + taken->run.pages;
    for (unsigned page = taken->run.first; page < end;) {
        unsigned first = bitmap_find(taken->dirty, page, end, true);
        unsigned last = bitmap_find(taken->dirty, first, end, false);
        if (first < last)
            memset(
                superslab_address(taken->superslab, first), 0, (size_t)(last - first) * PAGE_SIZE);
        page = last;
    }
}

void *span_alloc(size_t size, size_t alignment, bool zero)
{
    struct page_run taken;
    if (!page_heap_take(pages_of(size), pages_of(size_max(alignment, PAGE_SIZE)), &taken))
        return NULL;
    ATOMIC_STORE_RELEASE(&taken.superslab->span_pages[taken.run.first], (uint16_t)taken.run.pages);
    ATOMIC_ADD_RELAXED(&totals.allocated, 1);
    ATOMIC_ADD_RELAXED(&totals.live_bytes, taken.run.pages * PAGE_SIZE);
    if (zero && !taken.clean)
        zero_dirty_pages(&taken);
    return superslab_address(taken.superslab, taken.run.first);
}

/* Pages of the live span at `block`; does not return when there is none. */
static unsigned live_pages(struct superslab *superslab, const void *block, const char *call)
{
    unsigned page = superslab_page_of(block);
    unsigned pages = ATOMIC_LOAD_ACQUIRE(&superslab->span_pages[page]);
    if (LIKELY(pages && ((uintptr_t)block & (PAGE_SIZE - 1)) == 0))
        return pages;
    unsigned start = superslab_span_start(superslab, page);
    if (start < SUPERSLAB_PAGES)
        fatal_pointer(
            call, DEFECT_INTERIOR, block, superslab_address(superslab, start),
            superslab->span_pages[start] * PAGE_SIZE);
    if ((uintptr_t)block % MIN_ALIGNMENT)
        fatal_pointer(call, DEFECT_MISALIGNED, block, NULL, 0);
    fatal_pointer(call, DEFECT_DOUBLE_FREE, block, NULL, 0);
}

size_t span_size(struct superslab *superslab, const void *block, const char *call)
{
    return live_pages(superslab, block, call) * PAGE_SIZE;
}

void span_free(struct superslab *superslab, void *block, const char *call)
{
    unsigned pages = live_pages(superslab, block, call);
    unsigned page = superslab_page_of(block);
    /* The exchange makes one of two threads that free the same block the second one. */
    uint16_t expected = (uint16_t)pages;
    if (!__atomic_compare_exchange_n(
            &superslab->span_pages[page], &expected, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        fatal_pointer(call, DEFECT_DOUBLE_FREE, block, NULL, 0);
    ATOMIC_ADD_RELAXED(&totals.freed, 1);
    ATOMIC_ADD_RELAXED(&totals.live_bytes, -(uint64_t)(pages * PAGE_SIZE));
    page_heap_put(superslab, (struct run){page, pages}, pages);
}

bool span_resize(struct superslab *superslab, void *block, size_t size)
{
    if (size <= MID_MAX || size > SPAN_MAX)
        return false;
    unsigned page = superslab_page_of(block);
    unsigned before = superslab->span_pages[page], after = pages_of(size);
    if (after > before && !page_heap_take_at(superslab, page + before, after - before))
        return false;
    ATOMIC_STORE_RELEASE(&superslab->span_pages[page], (uint16_t)after);
    ATOMIC_ADD_RELAXED(&totals.live_bytes, ((uint64_t)after - before) * PAGE_SIZE);
    if (after < before)
        page_heap_put(superslab, (struct run){page + after, before - after}, before - after);
    return true;
}

struct span_stats span_stats(void)
{
    return (struct span_stats){
        ATOMIC_LOAD_RELAXED(&totals.allocated), ATOMIC_LOAD_RELAXED(&totals.freed),
        ATOMIC_LOAD_RELAXED(&totals.live_bytes)};
}
