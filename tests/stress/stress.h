/* The shadow-model stress: random calls of the whole allocation API by many threads, where every
 * block is checked against a model of what it must be.
 *
 *     main      options, seeds, the report            selftest  plants faults, expects reports
 *     crew      threads, generations, drift, proof    faults    the broken allocators for that
 *     worker    one random operation after another    entries   the functions under test
 *     perform   an operation, and what it must do     report    failures, results
 *     model     what a block must be                  content   blocks keep what was written
 *     shadow    no two live blocks overlap            random    sizes, alignments, choices
 *
 * The fuzzer (tests/fuzz) shares perform and what is below it, and entries.
 *
 * The harness allocates nothing by malloc: its memory is mapped, so that the library's live
 * figures must return exactly to where they were.
 *
 * Who may touch what (also what ThreadSanitizer sees):
 *   - A seat (slots, random state, counters, lease) belongs to the one thread that sits on it.
 *     Seats outlive their threads; pthread_join and pthread_create order one sitter after another.
 *   - A block belongs to the holder of the slot it is in. It changes hands through an exchange
 *     place, which is touched only between a successful exchange of `busy` to 1 (acquire) and the
 *     store of 0 (release); a thread that finds the place busy goes on without it.
 *   - The shadow's words are relaxed atomics, see shadow.h.
 *   - run.unleased is a relaxed atomic: it is a quantity, it guards no memory.
 *   - The list of finished seats is guarded by run.lock.
 *   - seat.published is a relaxed atomic, read by the progress line only. */
#ifndef STRESS_H
#define STRESS_H

#include <hakmem/hakmem.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TIERS = HAKMEM_TIER_BIG + 1 };

enum operation {
    OP_MALLOC,
    OP_CALLOC,
    OP_REALLOC,
    OP_REALLOCARRAY,
    OP_FREE,
    OP_FREE_SIZED,
    OP_FREE_ALIGNED_SIZED,
    OP_ALIGNED_ALLOC,
    OP_MEMALIGN,
    OP_POSIX_MEMALIGN,
    OP_VALLOC,
    OP_MALLOCX, /* from here on: jemalloc's calls */
    OP_RALLOCX,
    OP_XALLOCX,
    OP_DALLOCX,
    OP_SDALLOCX,
    OP_USABLE_SIZE,
    OP_TRIM,
    OP_PURGE,
    OP_FLUSH,
    OP_COUNT
};

enum {
    THREADS_MAX = 256,
    CONFIGURATIONS_MAX = 16,
    SLOTS_MAX = 16384,
    EXCHANGE_PLACES = 512,
    ERRNO_MARK = 0x5EED /* what errno must still be after a success */
};

/* The functions under test; faults.c has other ones. */
struct entries {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*reallocarray)(void *, size_t, size_t);
    void (*free)(void *);
    void (*free_sized)(void *, size_t);
    void (*free_aligned_sized)(void *, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);
    size_t (*malloc_usable_size)(void *);
    int (*malloc_trim)(size_t);
    void *(*mallocx)(size_t, int);
    void *(*rallocx)(void *, size_t, int);
    size_t (*xallocx)(void *, size_t, size_t, int);
    size_t (*sallocx)(const void *, int);
    void (*dallocx)(void *, int);
    void (*sdallocx)(void *, size_t, int);
    size_t (*nallocx)(size_t, int);
};

/* The flag of jemalloc's calls that asks for zeros; below it lies the log2 of the alignment. */
enum { FLAG_ZERO = 0x40 };

/* The allocator as the program sees it. Ends the program when that is not hakmem. */
const struct entries *entries_of_library(void);

/* One live block, or a free slot (address NULL). */
struct block {
    void *address;
    uint64_t pattern;         /* see content.h */
    uint32_t size;            /* as requested */
    uint32_t usable;          /* as told by malloc_usable_size at birth */
    uint32_t birth_operation; /* of the seat `birth_seat` */
    uint16_t birth_seat;
    uint8_t align_log2; /* as requested */
    uint8_t origin;     /* enum operation */
};

/* Where threads swap blocks; a cache line of its own. */
struct exchange {
    _Alignas(64) _Atomic uint32_t busy;
    struct block block; /* by the holder of `busy` */
};

struct options {
    uint64_t operations; /* of one seed, all threads and configurations together */
    uint64_t first_seed;
    uint64_t seeds;
    unsigned threads[CONFIGURATIONS_MAX];
    unsigned configurations;
    uint64_t live_bytes_max;
    uint64_t purge_every; /* operations of a thread; 0: never */
    bool reserve_addresses;
    bool json;
    bool progress;
    bool self_test;
};

struct run;

struct seat {
    struct run *run;
    const struct entries *entries;
    struct block *slots;
    uint64_t random;
    int *errno_place;         /* of the thread that sits here now */
    const uint64_t *refusals; /* memory that the system refused so far; NULL: none ever is */
    uint32_t active_mask;
    uint32_t give_chance; /* of 256: a full slot is first swapped with an exchange place */
    uint32_t lean;        /* 0: take the slot that comes, 1: prefer empty ones, 2: full ones */
    uint32_t index;
    uint64_t lease; /* bytes this seat may still allocate without asking the run */
    uint64_t operation;
    uint64_t operations;     /* to do in all */
    uint64_t generation_end; /* operation at which the present thread exits */
    uint64_t since_purge;
    uint64_t handed_over;
    uint64_t short_of_budget;
    uint64_t counts[OP_COUNT];
    uint64_t fresh; /* blocks allocated, realloc of a live block not counted */
    uint64_t freed; /* blocks freed, the same */
    uint64_t generations;
    _Atomic uint64_t published; /* `operation`, now and then, for the progress line */
    pthread_t thread;           /* main thread only */
    void *stack;                /* main thread only */
};

/* One configuration of one seed. */
struct run {
    const struct options *options;
    const struct entries *entries;
    uint64_t seed;
    uint64_t operations;
    unsigned threads;
    bool hardened;       /* the preset is on: all that is handed out is zero, and of exact size */
    uint32_t slots_mask; /* slots of each seat - 1 */
    uint64_t lease_bytes;
    _Atomic int64_t unleased;
    _Atomic int64_t unleased_low; /* the least seen, for the report */
    struct seat *seats;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned finished_count;        /* run.lock */
    unsigned finished[THREADS_MAX]; /* run.lock */
    struct exchange places[EXCHANGE_PLACES];
};

/* Figures of all runs of one configuration. */
struct totals {
    unsigned threads;
    uint64_t operations;
    uint64_t generations;
    uint64_t handed_over;
    uint64_t short_of_budget;
    uint64_t peak_leased;
    uint64_t fresh;
    uint64_t freed;
    double seconds;
    uint64_t counts[OP_COUNT];
    struct hakmem_usage tier[TIERS]; /* growth; live figures: see crew.c */
};

/* options.c: false after a message on stderr; *status is what to exit with. */
bool options_parse(struct options *options, int argc, char **argv, int *status);

/* worker.c */
void worker_generation(struct seat *seat);
void worker_free_all(struct seat *seat);
void worker_free_places(struct seat *seat);

/* crew.c: true when the run was clean; otherwise the reasons are on stderr. */
bool crew_run(
    const struct options *options, const struct entries *entries, uint64_t seed,
    unsigned configuration, struct totals *totals);

/* selftest.c: number of faults that went unnoticed. */
int self_test(void);

/* The walkers of the core (checks/walk.h), in the build of the stress that has it inside; NULL in
 * the other. */
__attribute__((weak)) void walk_shared(void);
__attribute__((weak)) void walk_all(void);

/* perform.c */
extern const char *const operation_names[OP_COUNT];

/* report.c */
extern const char *const tier_names[TIERS];
void report_watch_signals(void);
void report_now_running(const struct run *run); /* NULL: none */
void report_sits_here(const struct seat *seat); /* of the calling thread */
void report_complaint(const struct run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
_Noreturn void report_failure(
    const struct seat *seat, enum operation operation, const struct block *block,
    const char *format, ...) __attribute__((format(printf, 4, 5), cold));
void report_results_text(const struct options *options, const struct totals *totals, bool clean);
void report_results_json(const struct options *options, const struct totals *totals, bool clean);

/* Zeroed memory of the harness's own; the program ends when there is none. */
void *harness_map(size_t bytes);
void harness_unmap(void *memory, size_t bytes);

#endif
