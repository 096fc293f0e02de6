/* Magazines: a thread's stacks of pointers to free blocks, and the slow paths that fill and empty
 * them.
 *
 * A magazine is a stack of pointers to free blocks of one class. It lies in the heap's area, 128
 * KiB of addresses, touched only as magazines are used, and is addressed by slot index from the
 * area's start:
 *
 *     slot 0             begin          top            end
 *     | NULL | NULL | .. | NULL | block | block | ...  | NULL | ...
 *                         sentinel          ^ next to hand out
 *
 * `top` points at the block to hand out next. The NULL under the first block means empty; the one
 * above the last slot means full, and the unused slots between hold anything else. A magazine that
 * was never used has its top at slot 0, with NULL on either side: it is empty and full. So is the
 * magazine of class 0, the only one in the static heap that threads start with: no path tests for
 * initialisation. Foreign pointers have class 0 too, and leave the hit path of free by the same
 * test.
 *
 * An area of zeros needs little more than these tops to begin with, so a thread touches the page of
 * its front, and the pages of records whose classes it uses:
 *
 *     | front | record, 9 slots | record, 9 slots | ...      | longer magazines ...
 *     page 0                     by class, small ones first
 *
 * Pops count down to the next one that is *due*, by an instruction and a jump without a measurable
 * cost (docs/decisions/thread.md): with a due pop the thread takes a slow path, however often it
 * hits. The number of pops follows from the count left; that of pushes from the blocks that came
 * out and those still there.
 *
 * Short blocks in a magazine carry the mark (map/page_map.h), by which free notices a double free.
 * Only the program clears it, by writing to its block: a block that is freed with the mark was
 * freed twice, or never written to. Long blocks are not written to: their states say that they are
 * free (span/superslab.h).
 *
 * Fields are touched by the owner thread only, unless they say otherwise; those of magazines, in
 * slow paths, by the holder of the heap's gate (thread/idle.h).
 */
#ifndef THREAD_MAGAZINE_H
#define THREAD_MAGAZINE_H

#include "base/atomic.h"
#include "base/list.h"
#include "base/poison.h"
#include "map/page_map.h"
#include "map/size_class.h"
#include "os/lock.h"
#include "span/superslab.h"

struct heap;

struct slab;

enum {
    HEAP_BYTES = 128 * 1024, /* of address space; touched as magazines grow */
    HEAP_SLOTS = HEAP_BYTES / sizeof(void *),
    RANGE_KINDS = 10, /* slot ranges for 7, 15 .. 4095 blocks */
    RANGE_BLOCKS_MIN = 7
};

/* Counts of a magazine for the statistics; atomic relaxed, one writer. */
struct magazine_counts {
    uint64_t misses;    /* pops by the slow path */
    uint64_t overflows; /* pushes by the slow path */
    uint64_t refills;
    uint64_t flushes;
    uint64_t returned; /* blocks flushed, less those refilled; wraps */
};

/* Bit of `pops_at_due`. */
#define POPS_CHANGE ((uint64_t)1 << 63)

/* The slow paths' record of a magazine; all zero if that was never used. */
struct magazine {
    uint64_t pops_at_due; /* number of the next pop that is due; while that changes, POPS_CHANGE and
                             the pops so far; atomic, one writer: release on store pairs with
                             acquire on load */
    uint16_t begin;       /* slot of the sentinel; atomic relaxed, written inside the gate */
    uint16_t range;       /* first slot of its range; equals `begin` until others take blocks out */
    uint16_t capacity;    /* blocks, from the start of the range */
    uint16_t batches;     /* flushes, and attempted refills, since the last maintenance */
    uint8_t kind;         /* size of its slot range */
    bool flushed_last;    /* the last batch was a flush, not a refill */
    bool two_way;         /* blocks came and went before the last maintenance, or since */
    uint8_t sample_round; /* of the next due pop: trace_round if it is to be a sample */
    uint8_t debt;         /* of searches for blocks with the mark: see DEBT_MAX */
    uint32_t pops_seen;   /* pops at the last maintenance; all three wrap */
    uint32_t pushes_seen;
    uint32_t pops_parked; /* pops when the heap was last parked as often as it may be */
    struct magazine_counts counts;
    void *shortest_range[RANGE_BLOCKS_MIN + 2]; /* of kind 0: a magazine always has one */
};

/* The fields that the hit paths read and write. */
struct heap_front {
    void *null_slots[2];                   /* always NULL: the magazine of class 0 */
    uint8_t *classes;                      /* a class map; half of its address marks freed blocks */
    uintptr_t classes_base;                /* of that map */
    size_t classes_limit;                  /* 0 while closed; atomic relaxed: thread/idle.h */
    void **top[CLASS_COUNT];               /* next to hand out; one writer, any reader */
    uint64_t pops_left[CLASS_COUNT];       /* until one is due; one writer, read by any thread */
    uint8_t tiny_class[TINY_MAX + 1];      /* class by size, without a shift; as classes_limit */
    uint8_t mid_class[MID_MAX / MID_STEP]; /* by (size - 1) / MID_STEP; as classes_limit */
    uint8_t large_class[LARGE_MAX / LARGE_STEP]; /* by (size - 1) / LARGE_STEP; as classes_limit */
};

/* Hit path of malloc: the top block; NULL: the magazine is empty. Sets `*due` if the caller has to
 * call heap_pop_due. */
ALWAYS_INLINE void *magazine_pop(struct heap_front *front, size_t size_class, bool *due)
{
    void **top = front->top[size_class];
    void **block = *top;
    if (LIKELY(block != NULL)) {
        FORGET(size_class);
        STORE_HOT(&front->top[size_class], top - 1);
        FORGET(size_class);
        if (UNLIKELY(count_down_hot(&front->pops_left[size_class])))
            *due = true;
        unpoison(block, size_classes[size_class].size);
    }
    return block;
}

/* Pops a block of a class of long blocks, or CLASS_NONE. The state is written last: a signal
 * handler may get the block before it is out of the magazine, and give it back. */
ALWAYS_INLINE void *magazine_pop_long(struct heap_front *front, size_t size_class, bool *due)
{
    void *block = magazine_pop(front, size_class, due);
    KEEP_STORE_ORDER();
    if (LIKELY(block != NULL))
        superslab_start_block(block, (unsigned)size_class);
    return block;
}

/* The mark of freed blocks, and whether the block begins with it. */
ALWAYS_INLINE mark magazine_mark_of(const struct heap_front *front)
{
    return class_map_mark(front->classes);
}

ALWAYS_INLINE bool magazine_finds_mark(const struct heap_front *front, const void *block)
{
    return *(const mark *)block == magazine_mark_of(front);
}

ALWAYS_INLINE bool magazine_is_full(const struct heap_front *front, size_t size_class)
{
    return front->top[size_class][1] == NULL;
}

/* Puts a block into a magazine that is not full; `marks`: it does not carry the mark yet. */
ALWAYS_INLINE void magazine_put(
    struct heap_front *front, size_t size_class, void **block, bool marks)
{
    void **top = front->top[size_class];
    if (marks)
        *(mark *)block = magazine_mark_of(front);
    poison_block(block, size_classes[size_class].size);
    top[1] = block;
    FORGET(size_class);
    STORE_HOT(&front->top[size_class], top + 1);
}

/* Whether the block carries the mark of a freed one. Reads its lowest byte first: if the program
 * has just written less than four bytes there, a load of four would wait, since it can be served by
 * one store under way or by none. */
ALWAYS_INLINE bool magazine_has_mark(const struct heap_front *front, void *const *block)
{
    return UNLIKELY(*(const uint8_t *)block == (uint8_t)magazine_mark_of(front)) &&
           magazine_finds_mark(front, block);
}

/* Marks the block as freed. */
ALWAYS_INLINE void magazine_mark(const struct heap_front *front, unsigned size_class, void **block)
{
    if (size_class_is_long(size_class))
        superslab_end_block(block);
    else
        *(mark *)block = magazine_mark_of(front);
}

/* Hit path of free, for short blocks. If the magazine is full, or the block carries the mark,
 * nothing has happened. */
enum push { PUSH_DONE, PUSH_FULL, PUSH_MARKED };

ALWAYS_INLINE enum push magazine_push(struct heap_front *front, size_t size_class, void **block)
{
    FORGET(size_class);
    if (UNLIKELY(magazine_is_full(front, size_class)))
        return PUSH_FULL;
    if (UNLIKELY(magazine_has_mark(front, block)))
        return PUSH_MARKED;
    magazine_put(front, size_class, block, true);
    return PUSH_DONE;
}

/* Pushes a long block. False: the magazine is full, or the pointer is no such block, or a free
 * one; then nothing has happened. The state is written first, since another thread may take the
 * block out of the magazine. */
ALWAYS_INLINE bool magazine_push_long(struct heap_front *front, void **block)
{
    uint8_t *state = superslab_find_state(block);
    if (UNLIKELY(!state))
        return false;
    size_t size_class = superslab_live_class(state, block);
    if (UNLIKELY(!size_class))
        return false;
    FORGET(size_class);
    if (UNLIKELY(magazine_is_full(front, size_class)))
        return false;
    ATOMIC_STORE_RELAXED(state, BLOCK_FREED);
    KEEP_STORE_ORDER();
    magazine_put(front, size_class, block, false);
    return true;
}

/* How many blocks the magazine of the class has handed out. Any thread. */
uint64_t heap_pops(const struct heap *heap, unsigned size_class);

/* To be called by the owner after a due pop: notes in `sample_class` whether the block is to be
 * sampled, and sets the next due pop. */
void heap_pop_due(struct heap *heap, unsigned size_class);

/* Draws the next due pops of all classes anew. `unparked`: the heap was parked often enough for
 * this tick of the clock; the next pop of each class is due, then one after twice as many each
 * time. So a thread that becomes idle now comes by soon, and a busy one seldom. For the owner. */
void heap_draw_due(struct heap *heap, bool unparked);

/* Puts back the block that was popped last, since another block serves the allocation. In the
 * counts, that other one came out of the magazine. Inside the gate. */
void heap_put_back(struct heap *heap, unsigned size_class, void **block);

/* Count an allocation that no magazine served, and the free of such a block. */
void heap_count_take(struct heap *heap, unsigned size_class);
void heap_count_free(struct heap *heap, unsigned size_class);

/* A block out of the magazine, for slow paths; NULL: it is empty. */
void *heap_pop(struct heap *heap, unsigned size_class);

/* A batch from the bins of that shard; its lowest address is handed out first. Before fresh pages
 * are touched, the transfer caches of other shards serve; before memory grows, blocks cached for
 * other classes go. `alignment`: as in bin_refill. `heap`: an entered one, which may have to give
 * up its single blocks, or NULL. Returns how many; 0: no memory is left. */
unsigned heap_take(
    struct heap *heap, unsigned shard, unsigned size_class, void **blocks, unsigned count,
    unsigned alignment);

/* Fills an empty magazine and takes a block out of it; NULL: there are none. Unless `allow_fresh`,
 * only blocks that were handed out before serve. */
void *heap_refill(struct heap *heap, unsigned size_class, bool allow_fresh);

/* Marks a block as freed and puts it into the magazine. A full one gets room, by a longer range or
 * by returning blocks. */
void heap_put(struct heap *heap, unsigned size_class, void **block);

/* Takes a block of a single class that starts at a multiple of `alignment` out of the magazine, or
 * makes one; NULL: no memory is left. */
void *heap_take_aligned(struct heap *heap, unsigned size_class, size_t alignment);

/* Gives the caller's single block another such class, in place; counts as a free of the one and an
 * allocation of the other. */
bool heap_resize(struct heap *heap, struct slab *slab, unsigned size_class);

/* Takes up to `most` of the oldest blocks out of the magazine, but leaves the last `keep`; returns
 * how many. Writes no field that the hit paths write. */
unsigned magazine_take_bottom(
    struct heap *heap, unsigned size_class, void **blocks, unsigned most, unsigned keep);

/* Returns blocks that were taken out of a magazine of a heap of that shard: to transfer caches, or,
 * if these are full, to bins. */
void magazine_send(unsigned shard, unsigned size_class, void **blocks, unsigned count);

/* Moves the blocks that others left in the magazines to the start of their ranges. */
void heap_settle_magazines(struct heap *heap);

/* In a fork child: sets `begin` of each magazine to its sentinel, the first NULL below the top. */
void heap_find_sentinels(struct heap *heap);

/* True if the block, which carries the mark, is worth a search among the free ones: it is among the
 * next that the magazine would hand out, or, if `may_search`, there is little debt of searches. */
bool heap_suspects(struct heap *heap, unsigned size_class, const void *block, bool may_search);

/* Counts a search in vain as a debt, which grows with `blocks`, those in the transfer caches.
 * Programs cause such searches by blocks whose first word they never wrote. */
void heap_searched(struct heap *heap, unsigned size_class, unsigned blocks);

/* True if the magazine of the class holds the block. For the owner only: in the changing magazine
 * of another thread, a look may find a block that is no longer there. */
bool heap_caches(struct heap *heap, unsigned size_class, const void *block);

/* Blocks in the magazine of the class. */
unsigned heap_cached_blocks(const struct heap *heap, unsigned size_class);

/* Returns cached blocks, as magazine_send does, and shortens the magazines. False: `most` were too
 * few, counted as in BATCH_COST. */
bool heap_flush(struct heap *heap, size_t most);

/* In a slow path of the heap's thread, before memory grows: returns the single blocks in its
 * magazines to their bins; near a limit all long ones, and those magazines hold none from now on.
 * True: there were some. Does nothing in a signal handler that interrupts such a path. */
bool heap_flush_singles(struct heap *heap);

/* Sets up the magazines in an area of zeros. */
void heap_start_magazines(struct heap *heap);

/* Shrinks magazines that were not used since the last time, and those that are too long by now. */
void heap_maintain(struct heap *heap);

#endif
