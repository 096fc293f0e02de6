/* See block.h. */
#include "api/block.h"

#include <string.h>

#include "api/alloc.h"
#include "base/sparse.h"
#include "os/fatal.h"
#include "os/os.h"
#include "slab/bin.h"
#include "slab/transfer.h"
#include "thread/registry.h"

/* Aborts if a search finds that the block, which carries the mark, is free. Most are not: the
 * program has not written to their first word. */
static void check_marked(
    const struct slab *slab, const void *block, const char *call, bool may_search)
{
    unsigned size_class = slab->size_class;
    struct heap *heap = heap_enter();
    bool free = false;
    if (!heap || heap_suspects(heap, size_class, block, may_search)) {
        free = (heap && heap_caches(heap, size_class, block)) ||
               heap_pool_caches(size_class, block) || transfer_holds(size_class, block) ||
               bin_block_is_free(block, call);
        if (heap)
            heap_searched(heap, size_class, transfer_blocks(size_class));
    }
    if (heap)
        heap_leave(heap);
    if (free)
        fatal_pointer(call, DEFECT_DOUBLE_FREE, block, NULL, 0);
}

/* Whether glibc's malloc seems to have made an aligned block that lies in no memory of ours. Before
 * it stands its size, with flags, and behind it the header of the next one, with a size, too, and
 * the flag that this one is in use. A block that is a mapping has no next one, and before its size
 * stands how much of the mapping lies before. May read memory that a sanitizer watches. */
__attribute__((no_sanitize("address", "thread"))) static bool is_of_libc(const void *block)
{
    enum { HEADER_BYTES = 16, IN_USE = 1, MAPPED = 2, FLAGS = 15 };
    const volatile uintptr_t *header = (const uintptr_t *)block - 2;
    if (!os_is_readable((const void *)header, HEADER_BYTES))
        return false;
    uintptr_t before = header[0], size = header[1] & ~(uintptr_t)FLAGS, page = os_page_size();
    if (header[1] & MAPPED)
        return size && ((uintptr_t)header - before) % page == 0 && (before + size) % page == 0;
    const volatile uintptr_t *next = header + size / sizeof *header;
    return size >= 2 * HEADER_BYTES && os_is_readable((const void *)next, HEADER_BYTES) &&
           (next[1] & IN_USE) && next[1] >= HEADER_BYTES;
}

void block_refuse(struct block_info info, const void *block, const char *call)
{
    bool gone = info.kind == BLOCK_GONE;
    if (!gone)
        big_check_interior(block, call);
    if ((uintptr_t)block % MIN_ALIGNMENT)
        fatal_pointer(call, DEFECT_MISALIGNED, block, NULL, 0);
    enum defect defect = gone                ? DEFECT_DOUBLE_FREE
                         : is_of_libc(block) ? DEFECT_LIBC
                                             : DEFECT_FOREIGN;
    fatal_pointer(call, defect, block, NULL, 0);
}

size_t block_usable_size(
    struct block_info info, const void *block, const char *call, bool may_search)
{
    switch (info.kind) {
    case BLOCK_SLAB:
        slab_index(info.slab, block, call);
        if (size_class_is_long(info.slab->size_class)) {
            unsigned state = ATOMIC_LOAD_RELAXED(superslab_state_of(block));
            if (!superslab_is_live(state, block, info.slab->size_class))
                fatal_pointer(call, DEFECT_DOUBLE_FREE, block, NULL, 0);
        } else if (class_map_is_mark(*(const mark *)block))
            check_marked(info.slab, block, call, may_search);
        return size_classes[info.slab->size_class].size;
    case BLOCK_BIG:
        return big_size(info.big, block, call);
    case BLOCK_WATCHED:
        return trace_now()->size(block, call);
    case BLOCK_SCOPED:
        return SCOPES ? scope_size(block, call) : 0;
    case BLOCK_GONE:
    case BLOCK_FOREIGN:
        break;
    }
    block_refuse(info, block, call);
}

void resize_move(void *moved, void *block, size_t usable, size_t size)
{
    /* Little of a block of many pages may be in use. */
    size_t copied = size_min(usable, size);
    size_t sparse = copied > MID_MAX ? round_down(copied, sizeof(uint64_t)) : 0;
    sparse_copy(moved, block, sparse, HARDENED ? SPARSE_TO_ZEROES : SPARSE_TO_ANYTHING);
    memcpy((char *)moved + sparse, (char *)block + sparse, copied - sparse);
    /* The mark was checked already; a guarded block may be too short to have one. */
    if (!HARDENED && usable >= MIN_ALIGNMENT && usable <= SHORT_MAX)
        *(mark *)block = 0;
    if (UNLIKELY(ATOMIC_LOAD_RELAXED(&slab_samples_shard) != 0))
        trace_now()->moves(block);
    release(block);
}
