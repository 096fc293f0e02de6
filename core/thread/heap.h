/* The thread heap: a thread's magazines, and the slow paths that fill and empty them.
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
 *     | front | record, 8 slots | record, 8 slots | ...      | longer magazines ...
 *     page 0                     by class, small ones first
 *
 * Pops are counted, by an instruction that measured as free (docs/decisions); pushes are derived:
 * what went in is what came out plus what is there.
 *
 * Blocks in a magazine carry one mark: their first word holds the address of the class map, by
 * which free notices a double free. Nothing clears it but the program that writes to its block: a
 * block that comes back with the mark was freed twice, or never written to.
 *
 * Every field is touched by the owner thread only, unless it says otherwise; those of magazines, in
 * slow paths, by whoever is inside the heap's gate (thread/idle.h).
 */
#ifndef THREAD_HEAP_H
#define THREAD_HEAP_H

#include "base/atomic.h"
#include "base/list.h"
#include "base/poison.h"
#include "map/page_map.h"
#include "map/size_class.h"
#include "os/lock.h"

enum {
    HEAP_BYTES = 128 * 1024, /* of address space; touched as magazines grow */
    HEAP_SLOTS = HEAP_BYTES / sizeof(void *),
    RANGE_KINDS = 8, /* slot ranges for 7, 15 .. 1023 blocks */
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

/* What the slow paths keep of a magazine; all zero when that was never used. */
struct magazine {
    uint16_t begin;     /* slot of the sentinel; atomic relaxed, written inside the gate */
    uint16_t range;     /* first slot of its range: `begin`, until others take blocks out */
    uint16_t capacity;  /* blocks, from the start of the range */
    uint16_t batches;   /* flushes, and refills that were tried, since the last maintenance */
    uint8_t kind;       /* size of its slot range */
    bool flushed_last;  /* the last batch was a flush, not a refill */
    bool two_way;       /* before the last maintenance blocks came and went */
    uint8_t debt;       /* of searches for blocks with the mark: see DEBT_MAX */
    uint32_t pops_seen; /* pops at the last maintenance; these three wrap */
    uint32_t pushes_seen;
    uint32_t pops_at_batch; /* pops at the last one of these */
    struct magazine_counts counts;
    void *home[RANGE_BLOCKS_MIN + 2]; /* a shortest range, so that a magazine can always be */
};

/* What the hit paths read and write. */
struct heap_front {
    void *null_slots[2];                   /* always NULL: the magazine of class 0 */
    uint8_t *classes;                      /* a class map; its address marks freed blocks */
    uintptr_t classes_base;                /* of that map */
    size_t classes_limit;                  /* 0 while closed; atomic relaxed: thread/idle.h */
    void **top[CLASS_COUNT];               /* next to hand out; one writer, any reader */
    uint64_t pops[CLASS_COUNT];            /* blocks handed out; one writer, read by any thread */
    uint8_t tiny_class[TINY_MAX + 1];      /* class by size, without a shift; as classes_limit */
    uint8_t mid_class[MID_MAX / MID_STEP]; /* copy of mid_class_table; as classes_limit */
};

struct heap_area {
    struct heap_front front;
    struct magazine magazine[CLASS_COUNT - 1]; /* see magazine_of */
};

_Static_assert(HEAP_SLOTS <= UINT16_MAX, "slot indices fit their fields");

struct heap {
    struct heap_area *area; /* const */
    uint8_t depth;          /* slow paths entered; not 0 when a signal handler interrupts one */
    int cancel_type;        /* of the thread when it entered the outermost */
    uint64_t owner;         /* atomic, any thread: identity of the owner, 0 in the pool; see own */
    int owner_process;      /* atomic relaxed, any thread: its process id, when it took the heap */
    uint32_t gate;          /* atomic, any thread: see thread/idle.h */
    bool kept;    /* gate; a thread's own, not borrowed or pooled; these are atomic for fork */
    bool parked;  /* gate: by the owner */
    bool closed;  /* gate: by another thread */
    bool drained; /* gate: others took blocks out */
    bool emptied; /* gate: and left none that they may take */
    uint64_t closed_ns;  /* gate: when it was closed */
    uint8_t shard;       /* const */
    bool bare;           /* who has it out of the pool: the area is all zero */
    uint16_t slow_calls; /* since the last maintenance */
    uint16_t parks_left; /* at `parked_ms`: see PARKS_MAX in heap.c */
    uint64_t parked_ms;
    uint64_t reallocs_in_place;       /* atomic relaxed, one writer */
    uint16_t next_slot;               /* first slot never used by a range */
    uint16_t free_range[RANGE_KINDS]; /* free slot ranges, linked through their first slot */
    struct heap *next;                /* registry: const once linked */
    struct heap *next_free;           /* registry lock */
    uint8_t warm_ticks;               /* registry lock: ticks of the purge in the warm pool */
};

/* The record of a magazine. Those of the twins that the heap's shard uses come first, so that they
 * share a page with other small classes. */
ALWAYS_INLINE struct magazine *magazine_of(const struct heap *heap, unsigned class)
{
    unsigned place = class;
    if (heap->shard % 2 && class <= TWINS)
        place = class + SIZE_COUNT;
    else if (heap->shard % 2 && class > SIZE_COUNT)
        place = class - SIZE_COUNT;
    return &heap->area->magazine[place - 1];
}

/* The front of the calling thread's heap; of a static one, empty and full in all classes, before
 * the thread's first call, after its heap was released, and while it is parked. Initial-exec TLS:
 * one load by a constant offset. */
extern __thread struct heap_front *thread_heap __attribute__((tls_model("initial-exec")));

/* The calling thread's heap, NULL when it has none. */
struct heap *heap_of_thread(void);

/* Hit path of malloc: the top block, NULL when the magazine is empty. */
ALWAYS_INLINE void *magazine_pop(struct heap_front *front, size_t class)
{
    void **top = front->top[class];
    void **block = *top;
    if (LIKELY(block != NULL)) {
        FORGET(class);
        STORE_HOT(&front->top[class], top - 1);
        FORGET(class);
        COUNTER_ADD_HOT(&front->pops[class], 1);
        unpoison(block, size_classes[class].size);
    }
    return block;
}

ALWAYS_INLINE bool magazine_is_full(const struct heap_front *front, size_t class)
{
    return front->top[class][1] == NULL;
}

/* Puts a block into a magazine that is not full. */
ALWAYS_INLINE void magazine_put(struct heap_front *front, size_t class, void **block)
{
    void **top = front->top[class];
    block[0] = front->classes;
    poison_block(block, size_classes[class].size);
    top[1] = block;
    FORGET(class);
    STORE_HOT(&front->top[class], top + 1);
}

/* Hit path of free: false when the magazine is full, or the block carries the mark of a freed one;
 * then nothing has happened. */
ALWAYS_INLINE bool magazine_push(struct heap_front *front, size_t class, void **block)
{
    FORGET(class);
    if (UNLIKELY(magazine_is_full(front, class) || block[0] == front->classes))
        return false;
    magazine_put(front, class, block);
    return true;
}

/* The calling thread's heap for a slow path, made or adopted when the thread has none yet; NULL
 * when no memory is left. Puts off cancellation of the thread until heap_leave, so that it cannot
 * die with a lock in its hand. After the thread's heap was released (late in its exit) a pooled
 * heap is borrowed for the one call. */
struct heap *heap_enter(void);
void heap_leave(struct heap *heap);

/* While heaps stay parked, each call takes a slow path: see api/perturb.h. Each thread follows with
 * its next slow path. */
void heap_stay_parked(bool stay);

/* A block of a class whose magazine is empty, which is filled on the way: with blocks that were
 * handed out before or, if `fresh`, with any; NULL when there are none. */
void *heap_refill(struct heap *heap, unsigned class, bool fresh);

/* Puts a block into the magazine. One that is full gets room, by a longer range or by returning
 * blocks. */
void heap_put(struct heap *heap, unsigned class, void **block);

/* Sends all cached blocks home: to the depots, or, where these are full, to the bins. */
void heap_flush(struct heap *heap);

/* Does that for heaps whose threads have exited and that were left as they were, for the next
 * thread, if they lay in the pool for so many ticks of the purge. */
void heap_flush_pooled(unsigned ticks);

/* A tick of the purge: what lay in pooled heaps since the last one goes home. */
void heap_tick_pool(void);

/* Gives back everything that is free, but for what threads cache that run; returns bytes. */
size_t heap_purge(void);

/* Takes up to `most` of the oldest blocks out of the magazine, but for the last `keep`; returns how
 * many. Never writes what the hit paths write. */
unsigned magazine_take_bottom(
    struct heap *heap, unsigned class, void **blocks, unsigned most, unsigned keep);

/* Sends blocks home that were taken out of a magazine of a heap of that shard. */
void magazine_send(unsigned shard, unsigned class, void **blocks, unsigned count);

/* Moves what others left in the magazines to where these begin. */
void heap_settle_magazines(struct heap *heap);

/* Finds out where each magazine begins, by its sentinel. */
void heap_find_sentinels(struct heap *heap);

/* True when the block, which carries the mark, is worth a search among the free ones: it is one of
 * the next that the magazine would hand out, or, if `may_search`, there is little debt of searches.
 */
bool heap_suspects(struct heap *heap, unsigned class, const void *block, bool may_search);

/* Programs cause searches in vain, by blocks whose first word they never wrote, and a search
 * looks at thousands of blocks where the depot is full. So it makes a debt of one for so many
 * blocks; each overflow and each maintenance pays one off, and there is no search while there is
 * more than so much. */
enum { BLOCKS_PER_DEBT = 128, DEBT_MAX = 64 };

/* Counts a search of the class, with so many blocks in the depot. */
ALWAYS_INLINE void heap_searched(struct heap *heap, unsigned class, unsigned blocks)
{
    magazine_of(heap, class)->debt += (uint8_t)(1 + blocks / BLOCKS_PER_DEBT);
}

/* True when the magazine of the class holds the block. Only the owner can ask: a look into the
 * changing magazine of another thread may see what is no longer there. */
bool heap_caches(struct heap *heap, unsigned class, const void *block);

/* The same for heaps that wait with their blocks for the next thread. */
bool heap_pool_caches(unsigned class, const void *block);

/* Blocks in the magazine of the class. */
unsigned heap_cached_blocks(const struct heap *heap, unsigned class);

/* What all heaps together have counted of the class. */
struct heap_counts {
    uint64_t pops, cached;
    struct magazine_counts magazines;
};

struct heap_counts heap_counts(unsigned class);

/* All heaps ever made, newest first, linked by `next`; they are never unmapped. */
struct heap *heap_first(void);

/* How many threads there are for each CPU, rounded down; 1 or more. A thread that waits for two
 * others, on two CPUs, shall not make their magazines shorter. */
unsigned heap_crowd(void);

/* At most one thread has a heap. */
bool heap_is_only_one(void);

/* True while a thread owns the heap. */
bool heap_in_use(const struct heap *heap);

/* Called while the dynamic linker still relocates, by the resolver in override/early.c: then the
 * thread-local variables are zero, and get their first values later. The heap that the thread takes
 * before that is kept for it until heap_end_early, in the constructor. */
void heap_start_early(void);
void heap_end_early(void);

/* Releases the calling thread's heap as its exit would, and lets it start afresh. */
void heap_forget(void);

/* Before fork: sees to it that no other thread is in the middle of initialising the allocator. */
void heap_prepare_fork(void);

/* In a new process, in which no thread has a heap yet: that of the forking thread, which has the id
 * `now` instead of `before`, counts again when it is entered. Those of the threads that do not
 * exist here are left behind, to be found one by one by threads that need one. What they cached
 * stays allocated: it may have been in the middle of a change. */
void heap_begin_process(uint32_t before, uint32_t now);

/* Puts the registry right after a thread that is gone held its lock. */
void heap_repair_registry(void);

struct lock *heap_registry_lock(void);

/* Makes an area of zeros one whose magazines were never used. */
void heap_start_magazines(struct heap *heap);

/* Shrinks the magazines of classes that nothing happened to since the last time. */
void heap_maintain(struct heap *heap);

/* Debug walker over the heap's magazines and slot ranges. */
void heap_check(struct heap *heap);

/* Debug walker over the pool. */
void heap_check_pool(void);

#endif
