/* hakmem: the C interface of the allocator.
 *
 * Programs need none of this: preloading or linking the library replaces malloc and its family.
 * These functions are for programs that want to ask where the memory is, or to steer when it goes
 * back to the operating system. All of them may be called from any thread at any time, from a
 * signal handler only where it is said. None of them changes errno unless it says so.
 *
 * How it grows. A program and the library need not be of one age: what is compiled against this
 * header works with every older and newer library whose SONAME is the same (libhakmem.so.0), as
 * long as the older one has the functions that the program calls. Therefore
 *
 *  - functions are added, and never removed or changed;
 *  - the structures hold nothing but uint64_t, and new ones come last. Whoever asks passes the
 *    size that it knows: a field that the library does not know reads 0, one that the program does
 *    not know is not written;
 *  - there are no arrays: tiers and size classes are asked for one by one, by a number. A tier
 *    keeps its number for ever, and a new one gets the next. Size classes have other numbers in
 *    other versions: what a class is, says its size;
 *  - what is added up over all tiers is in hakmem_stats, tiers included that a program does not
 *    know.
 *
 * What cannot be done so gets a new SONAME, before 1.0 with a new minor version.
 */
#ifndef HAKMEM_H
#define HAKMEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAKMEM_VERSION_MAJOR 0
#define HAKMEM_VERSION_MINOR 1
#define HAKMEM_VERSION_PATCH 0
#define HAKMEM_VERSION "0.1.0"

#if defined(__GNUC__)
#define HAKMEM_API __attribute__((visibility("default")))
#else
#define HAKMEM_API
#endif

/* Version of the library that is loaded, as "MAJOR.MINOR.PATCH"; compare it with HAKMEM_VERSION,
 * the version of this header. The string is static. */
HAKMEM_API const char *hakmem_version(void);

/* Bytes that may be used in the block at `block`: at least what was asked for, the same for the
 * whole life of the block. 0 for NULL. Aborts with a message when `block` is not a live block, but
 * may miss one that was freed a moment ago. */
HAKMEM_API size_t hakmem_usable_size(const void *block);

/* Usable bytes that a request for `size` bytes gets at least; `size` when it cannot be served, and
 * where blocks may end with what was asked for: in the hardened library, and with the option
 * `sample_guards`. */
HAKMEM_API size_t hakmem_good_size(size_t size);

/* For callers that check before they write, as the functions of a fortified C library do: how many
 * bytes there are from `address`, which may lie inside a block, to the end of that; names and
 * meaning are hardened_malloc's. It is never less than may be used. SIZE_MAX where hakmem cannot
 * tell: what it did not hand out, and addresses deep in a block above 2 MiB. 0 for NULL, for a
 * block of no bytes in the hardened library, and for what is seen to be free, which ends the
 * program there, as an address does that is seen to lie behind the end of its block. The second
 * asks no record of the block, and gives the length of all blocks that lie there. Neither takes a
 * lock. */
HAKMEM_API size_t malloc_object_size(const void *address);
HAKMEM_API size_t malloc_object_size_fast(const void *address);

/* Gives all free memory back to the operating system that can be given back: what the calling
 * thread has cached, and what threads left when they exited, is flushed, free pages are purged,
 * wholly free 2 MiB pieces and cached big blocks are unmapped. Returns the bytes given back. Costs
 * system calls. */
HAKMEM_API size_t hakmem_purge(void);

/* Returns the calling thread's cached free blocks to the shared bins, so that other threads can
 * use them. Worth calling before a thread sleeps for long. */
HAKMEM_API void hakmem_thread_flush(void);

/* The tiers, by size of the request. */
enum hakmem_tier {
    HAKMEM_TIER_TINY = 0,  /* up to 1 KiB: slabs, behind magazines */
    HAKMEM_TIER_MID = 1,   /* up to 32 KiB: slabs, behind magazines */
    HAKMEM_TIER_LARGE = 2, /* up to 2 MiB: slabs, behind magazines */
    HAKMEM_TIER_BIG = 3    /* above: mappings of their own */
};

/* Calls and memory of one tier or one size class. Calls count since the program started; while
 * other threads run, the figures are a snapshot that may lag by the calls in flight. */
struct hakmem_usage {
    uint64_t live_blocks;     /* handed out and not freed */
    uint64_t live_bytes;      /* usable bytes of those */
    uint64_t cached_blocks;   /* free, in magazines and transfer caches */
    uint64_t cached_bytes;    /* bytes of those */
    uint64_t malloc_calls;    /* allocations served */
    uint64_t malloc_hits;     /* of these, by a magazine without any lock */
    uint64_t free_calls;      /* blocks freed */
    uint64_t free_hits;       /* of these, into a magazine without any lock */
    uint64_t refills;         /* batches taken from transfer caches or bins by magazines */
    uint64_t flushes;         /* batches returned to transfer caches or bins by magazines */
    uint64_t remote_frees;    /* blocks returned to a bin of another shard */
    uint64_t slabs;           /* slabs in use (big: mappings) */
    uint64_t committed_bytes; /* bytes of those slabs or mappings */
    uint64_t transfer_blocks; /* of cached_blocks: in transfer caches, between threads */
    uint64_t empty_slabs;     /* of slabs: kept without a block in use */
};

/* The whole heap. */
struct hakmem_stats {
    /* The sums of all tiers, as in hakmem_usage. */
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t cached_blocks;
    uint64_t cached_bytes;
    uint64_t malloc_calls;
    uint64_t malloc_hits;
    uint64_t free_calls;
    uint64_t free_hits;

    uint64_t libc_calls;        /* calls passed on to the C library (HAKMEM_FALLBACK=libc);
                                 * counted only when statistics are asked for by option */
    uint64_t reallocs_in_place; /* calls of realloc that left the block where it was; the others,
                                 * and those that changed its size class, count as a malloc and
                                 * a free */
    uint64_t mapped_bytes;      /* address space held for blocks */
    uint64_t committed_bytes;   /* of these: in use by slabs and big blocks */
    uint64_t retained_bytes;    /* of these: free and not given back: dirty pages, and freed big
                                 * blocks that are kept mapped */
    uint64_t purged_bytes;      /* given back to the operating system since the start */
    uint64_t metadata_bytes;    /* the allocator's own records, besides the above */
    uint64_t threads;           /* thread heaps in use */

    /* System calls made by the allocator since the program started. */
    uint64_t mmap_calls;
    uint64_t munmap_calls;
    uint64_t mremap_calls;
    uint64_t madvise_calls;
    uint64_t mprotect_calls;
    uint64_t futex_calls;

    uint64_t transfer_bytes; /* of cached_bytes: in transfer caches, between threads */
    uint64_t empty_bytes;    /* of committed_bytes: in slabs that are kept without a block in use */

    /* Of the measuring library (docs/measuring.md), else 0; hakmem_stats_json has more. */
    uint64_t malloc_slow_ns; /* time in calls of malloc that no magazine served at once */
    uint64_t free_slow_ns;   /* the same of free */
    uint64_t lock_waits;     /* times that a thread waited for a lock */
    uint64_t lock_wait_ns;   /* and how long, all together */

    uint64_t memory_limit_bytes; /* what may be resident, by the option `limit_mib` and the control
                                  * group; 0: no limit is known */
    uint64_t limit_purges;       /* times that memory was given back because a limit was near */
};

/* Fills `*stats`, which is `size` bytes long: sizeof(struct hakmem_stats) as the caller knows it.
 * Returns the bytes that the library knows of these; the others are set to 0. */
HAKMEM_API size_t hakmem_get_stats(struct hakmem_stats *stats, size_t size);

/* Number of tiers of the library, which may have more than enum hakmem_tier knows, or fewer. */
HAKMEM_API unsigned hakmem_tier_count(void);

/* Name of a tier in one word, as "tiny"; NULL when `tier` >= hakmem_tier_count(). The string is
 * static. */
HAKMEM_API const char *hakmem_tier_name(unsigned tier);

/* Fills `*usage`, which is `size` bytes long, for a tier. Returns the bytes that the library knows
 * of these; the others are set to 0. That is all, and returns 0, when `tier` >=
 * hakmem_tier_count(): nothing is in a tier that does not exist. */
HAKMEM_API size_t hakmem_get_tier(unsigned tier, struct hakmem_usage *usage, size_t size);

/* Number of size classes of the tiers that have such, which are all but big. */
HAKMEM_API unsigned hakmem_class_count(void);

/* Bytes of the blocks of size class `index`; sizes rise with the index. 0 when `index` >=
 * hakmem_class_count(). */
HAKMEM_API size_t hakmem_class_size(unsigned index);

/* As hakmem_get_tier, for size class `index`. */
HAKMEM_API size_t hakmem_get_class(unsigned index, struct hakmem_usage *usage, size_t size);

/* Writes all statistics and the effective configuration as one JSON object, cut off at `capacity`
 * and always NUL-terminated when `capacity` > 0. Returns the length of the whole text without the
 * NUL, as snprintf does. Members are added and never removed or changed, or "format", which is 1,
 * counts up. */
HAKMEM_API size_t hakmem_stats_json(char *buffer, size_t capacity);

/* Writes what the samples so far say of each stack to a file (docs/options.md, "Files", what a path
 * may be), in the text form that `go tool pprof` and other viewers read: live and allocated blocks
 * and bytes. Returns 0; ENODATA: nothing was sampled, see option sample_kib; EIO: it cannot be
 * written, and a line on stderr says why. May be called from signal handlers. */
HAKMEM_API int hakmem_profile_write(const char *path);

/* Reads the effective value of the option `name` (docs/options.md) into `*value`, in the
 * option's unit. Options that take a word report its position among the words allowed. Returns 0,
 * or ENOENT when there is no such option. */
HAKMEM_API int hakmem_option_get(const char *name, long *value);

/* Changes an option while the program runs. Returns 0; ENOENT: no such option; ERANGE: the value
 * is outside its limits; EPERM: this option can only be set at the start; ENOMEM: there is no
 * memory for what it asks, and it stays as it was. */
HAKMEM_API int hakmem_option_set(const char *name, long value);

/* ---- Scopes: memory by part of a program -----------------------------------------------------
 *
 * A scope is a named set of blocks that lie apart from all others: a program knows what a part of
 * it holds, bounds it, and ends it at once. While a thread is in a scope, all that it allocates by
 * malloc and its family, by operator new, or inside of libraries, comes from there; a realloc that
 * moves a block, too. Any thread frees a block of any scope, by free.
 *
 * A scope that is made while the thread is in another one lies inside that: what it holds counts
 * there as well, and it ends with that.
 *
 * A mistake ends the program, with a line that names the scope: a call with a scope that was
 * destroyed, a malloc in one, a second free, and the free of a block after its scope was reset or
 * destroyed. Of a scope that was destroyed long ago, of blocks above 2 MiB that were freed or ended
 * by a reset, and of those that a large one had besides 16 MiB, nothing is known any more.
 *
 * None of these may be called in a signal handler. The hardened library has no scopes. */
struct hakmem_scope;

/* Called in a thread whose allocation of `bytes` usable bytes finds the scope at its limit. It may
 * free blocks of the scope, or raise the limit, and then returns 1: the allocation tries again. 0:
 * the allocation fails. What it allocates comes from no scope. It must not end the scope, nor
 * be left but by return. */
typedef int hakmem_scope_callback(struct hakmem_scope *scope, size_t bytes, void *argument);

/* Makes a scope; `name`: for messages and statistics, which know its first 47 bytes. `limit`: how
 * many bytes its blocks may have together, by their usable sizes; 0: no limit. At the limit
 * `callback` is called with `argument`, unless it is NULL, and if that does not help, the
 * allocation fails with ENOMEM. Returns NULL and sets errno: ENOMEM: there is no memory; ENOSYS:
 * the library has no scopes. */
HAKMEM_API struct hakmem_scope *hakmem_scope_create(
    const char *name, size_t limit, hakmem_scope_callback *callback, void *argument);

/* The calling thread enters the scope, or, with NULL, none: then it allocates as outside of all.
 * It may be in several, as in one twice; the last one serves. Returns 0, or ENOMEM: it has not
 * entered. */
HAKMEM_API int hakmem_scope_enter(struct hakmem_scope *scope);

/* Leaves what was entered last, which has to be `scope`. A thread that ends leaves all. */
HAKMEM_API void hakmem_scope_leave(struct hakmem_scope *scope);

/* Allocates from the scope, wherever the thread is. `alignment` is a power of two. NULL and ENOMEM
 * as malloc. */
HAKMEM_API void *hakmem_scope_malloc(struct hakmem_scope *scope, size_t size);
HAKMEM_API void *hakmem_scope_aligned_alloc(
    struct hakmem_scope *scope, size_t alignment, size_t size);

/* What a scope holds, with those inside it. */
struct hakmem_scope_figures {
    uint64_t live_blocks;    /* handed out and not freed */
    uint64_t live_bytes;     /* usable bytes of those */
    uint64_t resident_bytes; /* of its pages, those in memory, as the system says */
    uint64_t limit_bytes;    /* 0: none */
};

/* Fills `*usage`, which is `size` bytes long, as hakmem_get_stats does. Blocks and bytes are exact.
 * Asks the system, for 2 MiB a call. */
HAKMEM_API size_t
hakmem_scope_usage(struct hakmem_scope *scope, struct hakmem_scope_figures *usage, size_t size);

/* Sets the limit. A scope that holds more gets nothing more until it holds less. */
HAKMEM_API void hakmem_scope_limit(struct hakmem_scope *scope, size_t limit);

/* Ends all blocks of the scope and of those inside it, and gives their pages back at once. Nobody
 * may use these blocks any more. */
HAKMEM_API void hakmem_scope_reset(struct hakmem_scope *scope);

/* The same, and ends the scope and those inside it. A thread that is still in one of them has to
 * leave it, but may not allocate before. */
HAKMEM_API void hakmem_scope_destroy(struct hakmem_scope *scope);

#ifdef __cplusplus
}
#endif

#endif
