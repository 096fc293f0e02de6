/* Bins: the slabs of a class, and the stack of free blocks on top of them.
 *
 * A bin is one size class in one shard (shard.h). It owns slabs of its class and holds those with
 * free blocks on lists by fullness; the fullest are used first, so that the others can become
 * empty. A block freed by any thread returns to the bin of its slab, unless the stack of the bin
 * where it was freed takes it in (transfer.h).
 *
 * A slab that becomes empty goes to the page heap and serves any class again. But a recurring burst
 * would make it anew each time: so a bin keeps as many empty slabs as it gave away and then made
 * again since the last tick, up to a bound in bytes:
 *
 *     slab runs empty:  fewer kept than `keep`?  yes: kept       no: to the page heap, missed + 1
 *     slab is made:     were any missed?         yes: keep + 1, missed - 1
 *     tick: kept ones that were not needed since the last go, and keep falls by as many
 *
 * One short lock a bin, held for a batch, whether that is of the stack or of slabs. Slabs are
 * created and destroyed outside it.
 */
#ifndef SLAB_BIN_H
#define SLAB_BIN_H

#include "base/tuning.h"
#include "os/lock.h"
#include "slab/slab.h"

/* Lists of slabs by free quarters, and one of wholly free slabs. */
enum { FULLNESS_LEVELS = 4, FULLNESS_EMPTY = FULLNESS_LEVELS };

/* No sweep; a sweep looks at slabs; slabs that it has looked at go back to the lists. */
enum sweep { SWEEP_NONE, SWEEP_LOOKS, SWEEP_ENDS };

struct bin {
    struct lock lock;
    /* The transfer cache (transfer.h); the counts are written under lock, read by any thread. */
    uint32_t stacked;      /* blocks */
    uint32_t stack_slots;  /* capacity */
    uint32_t stack_unused; /* lock: least of `stacked` since the last tick */
    uint32_t stack_freed;  /* atomic relaxed, any thread: blocks that came since any were taken */
    void **stack;          /* lock: the latest at the end; a record of metadata that grows */
    struct list slabs[FULLNESS_LEVELS + 1]; /* lock: with free blocks, fullest list first */
    struct slab *newest;                    /* lock: the slab made last, unless it is gone */
    struct list swept;    /* lock: slabs with free blocks that a sweep has looked at */
    uint64_t free_blocks; /* written under lock, read by any thread: in all its slabs */
    uint64_t free_swept;  /* lock: least of bin_listed_blocks since the last sweep's end */
    uint64_t free_unused; /* lock: least of bin_listed_blocks since the last tick */
    uint32_t slab_count;  /* written under lock, read by any thread: on lists or full */
    uint32_t kept;        /* written under lock, read by any thread: slabs on the last list */
    uint32_t kept_unused; /* lock: least of `kept` since the last tick */
    uint16_t keep;        /* lock: how many slabs may be kept */
    uint16_t missed;      /* lock: slabs given away beyond `keep`, since the last tick; saturates */
    uint8_t loans;        /* atomic relaxed, any thread: see bin_may_borrow */
    uint8_t sweeping;     /* written under lock, read by any thread: an enum sweep */
    uint64_t remote_blocks; /* atomic relaxed, any thread: returned by other shards */
    uint64_t direct_blocks; /* atomic relaxed, any thread: freed without a magazine */
};

/* The cost that a refill may have: blocks that were handed out before, fresh pages too, or more
 * memory from the system. */
enum refill { REFILL_USED, REFILL_FRESH, REFILL_MAP };

/* Takes up to `count` blocks of the class: the latest of the stack, or, if that is empty, those of
 * the fullest slabs, the lowest address of the fullest one last. Returns how many; 0: no memory is
 * left, or none at that cost. An alignment above 1 unit is for one single block, in a slab that is
 * made for it. */
unsigned bin_refill(
    unsigned shard, unsigned size_class, void **blocks, unsigned count, unsigned alignment,
    enum refill cost);

/* Gives the slab of the caller's single block another such class: slab_resize. */
bool bin_resize(struct slab *slab, unsigned size_class);

/* True for the first few requests of a class that has no slab in the shard: a block of a larger
 * class may serve instead. */
bool bin_may_borrow(unsigned shard, unsigned size_class);

/* Returns blocks of the class to the bins of their slabs; overwrites the array. Aborts if one is
 * not an allocated block of the class. `shard` is that which sends them, for the statistics. */
void bin_flush(unsigned shard, unsigned size_class, void **blocks, unsigned count);

/* True if the block is free in its slab's bitmap. */
bool bin_block_is_free(const void *block, const char *call);

/* In a fork child: repairs a bin, by its number among all (shard.h), whose lock was held by a
 * thread that does not exist here. Its stack is sound after each write. */
void bin_repair(unsigned number);

/* Calls `act` for each slab of the bin. Lock held, or lost. */
void bin_for_each_slab(
    unsigned shard, unsigned size_class, void (*act)(struct bin *bin, struct slab *slab));

/* ---- For sweep.c and bin_walk.c, under the lock of the bin ----------------------------------- */

/* The list that a slab with free blocks belongs to. */
unsigned bin_fullness(const struct slab *slab);

/* Puts the slab on the list for its number of free blocks. */
void bin_relist(struct bin *bin, struct slab *slab);

/* Lowers `free_swept` and `free_unused` to bin_listed_blocks, which is less after blocks were
 * taken, or a slab became empty. */
void bin_lower_bounds(struct bin *bin);

/* Takes an empty slab away from the bin and pushes it on `*gone`. */
void bin_detach(struct bin *bin, struct slab *slab, struct list *gone);

/* Free blocks in slabs that are not empty. */
uint64_t bin_listed_blocks(const struct bin *bin);

/* True if these are many more than they were at least since the last sweep. */
bool bin_has_excess(const struct bin *bin, unsigned size_class);

/* Counts empty slabs that were given away. */
void bin_miss(struct bin *bin, unsigned slabs);

/* Destroys the slabs, outside the lock. */
void bin_destroy(struct list *gone);

#endif
