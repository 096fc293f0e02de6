/* The thread heap: a thread's magazines, and the slow paths that fill and empty them.
 *
 * A magazine is a stack of pointers to free blocks of one class. The stacks lie in the heap's own
 * slot area and are addressed by slot index from the start of the heap:
 *
 *     slot 0                            begin          top            end
 *     | NULL | heap's fields ... | ... | NULL | block | block |  ...  | ...
 *                                   sentinel          ^ next to hand out
 *
 * The word of a magazine holds the index of its top slot in the low 16 bits and the number of
 * blocks ever popped in the upper 48. A pop adds 0xffff, which is one to the count and minus one to
 * the index: every call is counted, and no instruction is spent on it. Pushes are derived: what
 * went in is what came out plus what is there.
 *
 * Pop reads the top slot; the NULL sentinel says empty. Push compares with `end`. A heap whose
 * words are all zero is empty and full in every class: the static heap that a thread starts with.
 * So there is no "initialised?" test on any path. Class 0 (no slab) is full for ever: foreign
 * pointers leave the hit path of free by the same test.
 *
 * Blocks in a magazine keep one mark: the word at offset 8 holds the heap's `freed_mark`, by which
 * free notices a double free. Pop clears it.
 *
 * Every field is touched by the owner thread only, unless it says otherwise.
 */
#ifndef THREAD_HEAP_H
#define THREAD_HEAP_H

#include "base/atomic.h"
#include "base/list.h"
#include "map/page_map.h"
#include "map/size_class.h"
#include "os/lock.h"

enum {
    HEAP_BYTES = 128 * 1024, /* of address space; touched as magazines grow */
    HEAP_SLOTS = HEAP_BYTES / sizeof(void *),
    SLOT_BITS = 16,
    REGION_KINDS = 6, /* slot regions of 8, 16 .. 256 slots */
    REGION_SLOTS_MIN = 8
};

#define MAGAZINE_POP_STEP (((uint64_t)1 << SLOT_BITS) - 1)

/* A magazine's word: one 64-bit counter, whose low half-word the hit paths read alone. */
union magazine_word {
    uint64_t word;
    uint16_t top; /* little-endian: the low 16 bits */
};

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the magazine word needs a little-endian machine"
#endif

/* What the slow paths keep of a magazine. The counters are atomic relaxed with one writer. */
struct magazine {
    uint16_t begin;     /* slot of the sentinel; atomic relaxed, written by the owner */
    uint8_t kind;       /* size of its slot region */
    bool flushed_last;  /* the last batch was a flush, not a refill */
    uint16_t batches;   /* refills and flushes since the last maintenance */
    uint64_t pops_seen; /* pops at the last maintenance */
    uint64_t misses;    /* pops that had to wait for a refill */
    uint64_t overflows; /* pushes that had to wait for a flush */
    uint64_t refills;
    uint64_t flushes;
    uint64_t refilled; /* blocks */
    uint64_t flushed;  /* blocks */
};

/* What the hit paths read and write. */
struct heap_front {
    void *null_slot;        /* slot 0, always NULL: the top of every magazine without slots */
    uint8_t *classes;       /* const: the class map, also the mark of freed blocks */
    uintptr_t classes_base; /* const */
    size_t classes_limit;   /* const */
    union magazine_word word[CLASS_COUNT];
    uint16_t end[CLASS_COUNT];
    uint8_t tiny_class[TINY_MAX + 1]; /* const: class by size, without a shift */
};

struct heap {
    struct heap_front front;
    uint8_t depth;       /* slow paths entered: a signal handler must not flush then */
    int cancel_state;    /* of the thread when it entered the outermost */
    bool in_use;         /* written under the registry lock, read by any thread */
    uint8_t shard;       /* const */
    uint16_t slow_calls; /* since the last maintenance */
    uint16_t next_slot;  /* first slot never used by a region */
    uint16_t free_region[REGION_KINDS]; /* free slot regions, linked through their first slot */
    struct heap *next;                  /* registry: const once linked */
    struct heap *next_free;             /* registry lock */
    struct magazine magazine[CLASS_COUNT];
};

_Static_assert(HEAP_SLOTS <= 1 << SLOT_BITS, "slot indices fit the word");

/* The front of the calling thread's heap; of a static one, empty and full in all classes, before
 * the thread's first call and after its heap was released. Initial-exec TLS: one load by a constant
 * offset. */
extern __thread struct heap_front *thread_heap __attribute__((tls_model("initial-exec")));

/* The calling thread's heap, NULL when it has none. */
struct heap *heap_of_thread(void);

/* Hit path of malloc: the top block, NULL when the magazine is empty. */
ALWAYS_INLINE void *magazine_pop(struct heap_front *front, size_t class)
{
    void **block = ((void ***)front)[front->word[class].top];
    if (LIKELY(block != NULL)) {
        FORGET(class);
        COUNTER_ADD_HOT(&front->word[class].word, MAGAZINE_POP_STEP);
        block[1] = NULL;
    }
    return block;
}

ALWAYS_INLINE bool magazine_is_full(const struct heap_front *front, size_t class)
{
    return front->word[class].top == front->end[class];
}

/* Hit path of free, into a magazine that is not full. */
ALWAYS_INLINE void magazine_push(struct heap_front *front, size_t class, void *block)
{
    ((void **)front)[front->word[class].top + 1] = block;
    FORGET(class);
    COUNTER_ADD_HOT(&front->word[class].word, 1);
}

/* The mark that a freed block carries at offset 8 while it is cached. */
ALWAYS_INLINE void *heap_freed_mark(const struct heap_front *front)
{
    return front->classes;
}

/* The calling thread's heap for a slow path, made or adopted when the thread has none yet; NULL
 * when no memory is left. Puts off cancellation of the thread until heap_leave, so that it cannot
 * die with a lock in its hand. After the thread's heap was released (late in its exit) a pooled
 * heap is borrowed for the one call. */
struct heap *heap_enter(void);
void heap_leave(struct heap *heap);

/* Fills the empty magazine; false when no memory is left. */
bool heap_refill(struct heap *heap, unsigned class);

/* Makes room in the full magazine, by a longer region or by returning blocks. */
void heap_overflow(struct heap *heap, unsigned class);

/* Returns all cached blocks to the bins. */
void heap_flush(struct heap *heap);

/* True when the magazine of the class holds the block. */
bool heap_caches(struct heap *heap, unsigned class, const void *block);

/* Blocks in the magazine of the class. */
unsigned heap_cached_blocks(const struct heap *heap, unsigned class);

/* All heaps ever made, newest first, linked by `next`; they are never unmapped. */
struct heap *heap_first(void);

/* True while a thread owns the heap. */
bool heap_in_use(const struct heap *heap);

/* Prepares everything that heaps need, once; false when the system has no memory. */
bool heap_init(void);

/* Releases the calling thread's heap as its exit would, and lets it start afresh. */
void heap_forget(void);

/* In the child of fork: the heaps of the threads that do not exist there become free. What they
 * cached stays allocated: it may have been in the middle of a change. */
void heap_abandon_others(void);

struct lock *heap_registry_lock(void);

/* Debug walker over the heap's magazines and slot regions. */
void heap_check(struct heap *heap);

#endif
