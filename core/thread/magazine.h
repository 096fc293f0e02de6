/* Magazines: a thread's stacks of pointers to free blocks, and the slow paths that fill and empty
 * them.
 *
 * A magazine is a stack of pointers to free blocks of one class. It lies in the heap's area, 128
 * KiB of addresses that are touched as magazines are used, and is addressed by slot index from the
 * start of that:
 *
 *     slot 0             begin          top            end
 *     | NULL | NULL | .. | NULL | block | block | ...  | NULL | ...
 *                         sentinel          ^ next to hand out
 *
 * `top` points at the block to hand out next. The NULL under the first block says empty; the one
 * above the last slot says full, and the unused slots between hold anything else. A magazine that
 * was never used has its top at slot 0, with NULL on either side: it is empty and full. So is that
 * of class 0, the only one that the static heap knows that a thread starts with; there is no
 * "initialised?" test on any path. Foreign pointers have class 0 too, and leave the hit path of
 * free by the same test.
 *
 * An area that is all zero needs little more than these tops to begin with, so a thread touches the
 * page of its front, and the pages of those records whose classes it uses:
 *
 *     | front | record, 9 slots | record, 9 slots | ...      | longer magazines ...
 *     page 0                     by class, small ones first
 *
 * Pops count down to the next one that is *due*, by an instruction and a jump that measured as free
 * (docs/decisions): with that one the thread comes by a slow path, however often it hits. How many
 * pops there were follows from how many are left; pushes are derived: what went in is what came out
 * plus what is there.
 *
 * Short blocks in a magazine carry one mark (map/page_map.h), by which free notices a double free.
 * malloc clears it. So a block that comes back with the mark was freed twice, or the program copied
 * bytes into it that had been the start of a freed one. Long blocks are not written to: their
 * states say that they are free (span/superslab.h).
 *
 * Every field is touched by the owner thread only, unless it says otherwise; those of magazines, in
 * slow paths, by whoever is inside the heap's gate (thread/idle.h).
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

/* What a magazine counts for the statistics; atomic relaxed with one writer. */
struct magazine_counts {
    uint64_t misses;    /* pops by the slow path */
    uint64_t overflows; /* pushes by the slow path */
    uint64_t refills;
    uint64_t flushes;
    uint64_t returned; /* blocks that were flushed, less those that were refilled; wraps */
};

/* Bit of `pops_at_due`. */
#define POPS_CHANGE ((uint64_t)1 << 63)

/* What the slow paths keep of a magazine; all zero when that was never used. */
struct magazine {
    uint64_t pops_at_due; /* how many pops there will be with the next one that is due; POPS_CHANGE
                             and how many there are, while that changes; atomic, one writer:
                             release on store pairs with acquire on load */
    uint16_t begin;       /* slot of the sentinel; atomic relaxed, written inside the gate */
    uint16_t range;       /* first slot of its range: `begin`, until others take blocks out */
    uint16_t capacity;    /* blocks, from the start of the range */
    uint16_t batches;     /* flushes, and refills that were tried, since the last maintenance */
    uint8_t kind;         /* size of its slot range */
    bool flushed_last;    /* the last batch was a flush, not a refill */
    bool two_way;         /* before the last maintenance, or since, blocks came and went */
    uint8_t sample_round; /* of the next pop that is due: trace_round when it was to be a sample */
    uint32_t pops_seen;   /* pops at the last maintenance; both wrap */
    uint32_t pushes_seen;
    struct magazine_counts counts;
    void *home[RANGE_BLOCKS_MIN + 2]; /* a shortest range, so that a magazine can always be */
};

/* What the hit paths read and write. */
struct heap_front {
    void *null_slots[2];                   /* always NULL: the magazine of class 0 */
    uint8_t *classes;                      /* a class map; half of its address marks freed blocks */
    uintptr_t classes_base;                /* of that map */
    size_t classes_limit;                  /* 0 while closed; atomic relaxed: thread/idle.h */
    void **top[CLASS_COUNT];               /* next to hand out; one writer, any reader */
    uint64_t pops_left[CLASS_COUNT];       /* until one is due; one writer, read by any thread */
    uint8_t tiny_class[TINY_MAX + 1];      /* class by size, without a shift; as classes_limit */
    uint8_t mid_class[MID_MAX / MID_STEP]; /* by (size - 1) / MID_STEP; as classes_limit */
    uint8_t large_class[LARGE_MAX / LARGE_STEP]; /* by (size - 1) / LARGE_STEP; the same */
};

/* Hit path of malloc: the top block, NULL when the magazine is empty. Sets `*due` if it is a pop
 * that heap_pop_due is to be told of. */
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

/* The same for a class of short blocks. The mark goes last: a signal handler may get the block
 * before it is out of the magazine, and free it. */
ALWAYS_INLINE void *magazine_pop_short(struct heap_front *front, size_t size_class, bool *due)
{
    void *block = magazine_pop(front, size_class, due);
    KEEP_STORE_ORDER();
    if (LIKELY(block != NULL))
        *(mark *)block = 0;
    return block;
}

/* The same for a class of long blocks, or CLASS_NONE. The state is written last: a signal handler
 * may get the block before it is out of the magazine, and give it back. */
ALWAYS_INLINE void *magazine_pop_long(struct heap_front *front, size_t size_class, bool *due)
{
    void *block = magazine_pop(front, size_class, due);
    KEEP_STORE_ORDER();
    if (LIKELY(block != NULL))
        superslab_start_block(block, (unsigned)size_class);
    return block;
}

/* What marks freed blocks, and whether the first bytes of the block are that. */
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

/* Whether the block carries the mark of a freed one. Its lowest byte is looked at first: a program
 * that has just written less than four bytes there would wait for them, since a load gets from the
 * stores under way what one of them has whole, or nothing (docs/decisions). */
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

/* Hit path of free, for short blocks: false when the magazine is full, or else the block carries
 * the mark; then nothing has happened. */
ALWAYS_INLINE bool magazine_push(struct heap_front *front, size_t size_class, void **block)
{
    FORGET(size_class);
    if (UNLIKELY(magazine_is_full(front, size_class) || magazine_has_mark(front, block)))
        return false;
    magazine_put(front, size_class, block, true);
    return true;
}

/* That for long blocks: false when the magazine is full, or the pointer is no such block, or a free
 * one; then nothing has happened. The state is written first, since who takes the block out of the
 * magazine may be another thread. */
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

/* To be called by the owner after a pop that was due: notes in `sample_class` whether the block is
 * to be sampled, and sets when the next one is due. */
void heap_pop_due(struct heap *heap, unsigned size_class);

/* Draws anew when pops are due, of all classes. By the owner. */
void heap_draw_due(struct heap *heap);

/* Puts the block back that was popped last for an allocation that another block serves now: for
 * the counts it is as if that one had come out of the magazine. Inside the gate. */
void heap_exchange(struct heap *heap, unsigned size_class, void **block);

/* Counts an allocation that another block serves than one of a magazine, and the free of one. */
void heap_count_take(struct heap *heap, unsigned size_class);
void heap_count_free(struct heap *heap, unsigned size_class);

/* A block out of the magazine, NULL when it is empty: for slow paths. */
void *heap_pop(struct heap *heap, unsigned size_class);

/* A batch from the bins of that shard, which others may have to make room for: its lowest address
 * is handed out first. Before fresh pages are touched, what the transfer caches of other shards
 * hold serves, but for long blocks, which stay apart by shard; before memory grows that serves for
 * these as well, and what is cached for other classes. `alignment`: as bin_refill has it. The heap
 * that lends on the way, entered, or NULL. Returns how many, 0 when no memory is left. */
unsigned heap_take(
    struct heap *heap, unsigned shard, unsigned size_class, void **blocks, unsigned count,
    unsigned alignment);

/* A block of a class whose magazine is empty, which is filled on the way: with blocks that were
 * handed out before or, if `fresh`, with any; NULL when there are none. */
void *heap_refill(struct heap *heap, unsigned size_class, bool fresh);

/* Marks a block as freed and puts it into the magazine. One that is full gets room, by a longer
 * range or by returning blocks. */
void heap_put(struct heap *heap, unsigned size_class, void **block);

/* Takes a block of a single class that starts at a multiple of `alignment` out of the magazine, or
 * makes one; NULL when no memory is left. */
void *heap_take_aligned(struct heap *heap, unsigned size_class, size_t alignment);

/* Makes the single block, which the caller has, one of another such class where it is; counts as a
 * free of the one and an allocation of the other. */
bool heap_resize(struct heap *heap, struct slab *slab, unsigned size_class);

/* Takes up to `most` of the oldest blocks out of the magazine, but for the last `keep`; returns how
 * many. Never writes what the hit paths write. */
unsigned magazine_take_bottom(
    struct heap *heap, unsigned size_class, void **blocks, unsigned most, unsigned keep);

/* Sends blocks home that were taken out of a magazine of a heap of that shard. */
void magazine_send(unsigned shard, unsigned size_class, void **blocks, unsigned count);

/* Moves what others left in the magazines to where these begin. */
void heap_settle_magazines(struct heap *heap);

/* Finds out where each magazine begins, by its sentinel. */
void heap_find_sentinels(struct heap *heap);

/* True when the magazine of the class holds the block. Only the owner can ask: a look into the
 * changing magazine of another thread may see what is no longer there. */
bool heap_caches(struct heap *heap, unsigned size_class, const void *block);

/* Blocks in the magazine of the class. */
unsigned heap_cached_blocks(const struct heap *heap, unsigned size_class);

/* Sends all cached blocks home: to the transfer caches, or, where these are full, to the
 * bins. */
void heap_flush(struct heap *heap);

/* Before memory grows, in a slow path of the heap's thread: sends home what its magazines hold of
 * single blocks, near a limit of all long ones; true when there were any. Does nothing in a signal
 * handler that interrupts such a path. */
bool heap_lend(struct heap *heap);

/* Makes an area of zeros one whose magazines were never used. */
void heap_start_magazines(struct heap *heap);

/* Shrinks the magazines of classes that nothing happened to since the last time. */
void heap_maintain(struct heap *heap);

#endif
