/* The wall to trace/: the calls by which the allocator tells its observers of events.
 *
 * trace/ takes samples of allocations (sample.h), guards some of them (guard.h), logs their births
 * and deaths (log.h, profile.h), and reports on a program that dies (crash.h). It may look into
 * everything. The allocator includes this header of it and no other, and works without the folder:
 * then `trace_open` is not there, and `trace` stays NULL.
 *
 *     the allocator   a pop is due | a watched block is asked for, resized, freed | the end
 *                           |                             |                           |
 *     struct trace         next, replace              size, resized, free            stop
 *
 * A watched block lies in a slab of the shard of samples, or has a sample in its big block's
 * record, or lies in no region: all of these leave the hit paths anyway.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include "base/atomic.h"
#include "base/macros.h"
#include "base/probe.h"
#include "scope/scope.h"

struct big;
struct fatal_line;
struct heap;

/* ---- Stacks ---------------------------------------------------------------------------------- */

/* Where an allocation was called from. */
struct trace_start {
    uintptr_t top;    /* stack pointer before the call */
    uintptr_t frame;  /* the caller's frame pointer */
    uintptr_t caller; /* the return address */
};

/* Where a function saves its caller's frame pointer, in words from its own. */
#if defined(__riscv)
enum { TRACE_FRAME_SAVED = -2 };
#else
enum { TRACE_FRAME_SAVED = 0 };
#endif

/* For a function that the program's call reaches by jumps alone. */
#define TRACE_START()                                                                              \
    ((struct trace_start){                                                                         \
        (uintptr_t)__builtin_dwarf_cfa(),                                                          \
        ((uintptr_t *)__builtin_frame_address(0))[TRACE_FRAME_SAVED],                              \
        (uintptr_t)__builtin_return_address(0)})

/* As a mean distance of samples: every block is one. */
enum { TRACE_EVERY = 1 };

/* ---- Records --------------------------------------------------------------------------------- */

enum {
    SITE_FRAMES_MAX = 32,
    SITE_PARTS = 256,    /* of a block */
    SITE_LIFETIMES = 32, /* below 1 us, 2 us, 4 us .. */
    SITE_CHAINS = 4096
};

/* A stack that samples were allocated from: see site.h. */
struct site {
    struct site *next_in_chain; /* const once linked */
    struct site *next;          /* const once linked: the next older site */
    uint64_t hash;              /* const, as `modules`, `number`, `frames` and `frame` */
    uint64_t modules;           /* const: of modules_of_stack, when it was made */
    uint32_t number;            /* from 1; 0: of samples without a site */
    uint32_t frames;
    uint64_t born_samples; /* atomic relaxed, any thread, as all counts that follow */
    uint64_t born_bytes;
    uint64_t born_parts;
    uint64_t dead_samples; /* dead: freed, or moved by realloc */
    uint64_t dead_bytes;
    uint64_t dead_parts;
    uint64_t remote_parts;             /* of these, freed by another thread */
    uint64_t realloc_parts;            /* of these, moved by realloc */
    uint64_t lifetime[SITE_LIFETIMES]; /* of these, parts by their lifetime */
    char scope[SCOPE_PATH_BYTES]; /* const: the name of the thread's scope (scope_name), or "" */
    uintptr_t frame[];            /* addresses behind the calls, innermost first */
};

/* SITE_CHAINS chains by hash, the newest site first; mapped for the first site. The pointer and the
 * chains are atomic: release on store pairs with acquire on load. Only site.c and the descriptor
 * look at them. */
extern struct site **site_chains;

/* The record of a live sampled block. The owner of the block owns it. */
struct sample {
    struct site *site;
    uint64_t requested_bytes;
    uint64_t parts;     /* how many blocks it stands for, times SITE_PARTS */
    uint64_t birth_ns;  /* of os_clock_ns */
    uint64_t log;       /* its log_handle */
    uintptr_t place;    /* the block that it took the place of, among its kind; 0: a big one */
    uint32_t thread;    /* the system's id of the thread that allocated it */
    uint8_t size_class; /* that the block counts as; CLASS_NONE: a big one */
    bool moves;         /* realloc has copied its contents, and is about to free it */
};

/* A request from outside, while the program runs: see api/watch.h. */
enum attach_request { ATTACH_NOTHING, ATTACH_BEGIN, ATTACH_END, ATTACH_TRIM };

enum { ATTACH_PATH_BYTES = 4096, ATTACH_SAID_BYTES = 640 };

extern struct attach {
    uint32_t request;             /* atomic, any thread: an enum attach_request */
    uint32_t answers;             /* atomic: counts the requests that were answered; release */
    uint32_t is_recording;        /* by the answering thread: the recording began */
    uint64_t mean_bytes;          /* by the observer: mean distance of two samples */
    uint64_t give_bytes;          /* by the observer: how much is to go back; UINT64_MAX: all */
    char path[ATTACH_PATH_BYTES]; /* by the observer: as HAKMEM_RECORD_FILE */
    char said[ATTACH_SAID_BYTES]; /* the log's last complaint; ends with a NUL */
} attachment;

/* ---- Calls ----------------------------------------------------------------------------------- */

/* The caller holds no lock, and has not entered the heap, unless stated otherwise. */
struct trace {
    /* From the constructor, when the options are known; at the end of the program. */
    void (*start)(void);
    void (*stop)(void);

    /* The calling thread has taken the heap, or is about to give it up. The heap may be entered. */
    void (*thread_starts)(struct heap *heap);
    void (*thread_ends)(struct heap *heap);

    /* How many pops of blocks of that size until the next is due, `most` at most. `*round`:
     * trace_round if that one is to be a sample, else 0. `*random` belongs to the heap, which is
     * entered. */
    uint64_t (*next)(uint64_t *random, size_t bytes, uint64_t most, uint8_t *round);

    /* The calling thread's last pop asked for a sample (heap->sample_class). Returns a sampled
     * block, zeroed if `zero`, in place of `block`, which goes back; or `block`, if that cannot be.
     */
    void *(*replace)(
        void *block, size_t size, size_t alignment, bool zero, const struct trace_start *start);

    /* Decides whether a big block that was just allocated is a sample. */
    void (*big)(struct big *big, size_t size, const struct trace_start *start);

    /* For blocks of the hardened library: decides whether one of the class will be a sample; NULL:
     * it will not. The caller passes the sample to `begin` with the block, or to `drop` if it has
     * none. */
    struct sample *(*decide)(size_t size, unsigned size_class, const struct trace_start *start);
    void (*begin)(struct sample *sample, void *block, size_t usable);
    void (*drop)(struct sample *sample);

    /* Whether an address that is in no region is one of a watched block. The heap may be entered.
     */
    bool (*covers)(const void *address);

    /* Usable bytes of a watched block of the default library. Aborts, naming `call`, if `block` is
     * not the start of a live one. The heap may be entered. */
    size_t (*size)(const void *block, const char *call);

    /* Bytes from the address, anywhere in a watched block, to the block's end. */
    size_t (*object)(const void *address);

    /* Frees a watched block; aborts as `size` does. */
    void (*free)(void *block, const struct trace_start *start);

    /* Of any block that may be a sample: it has another size, and, if it is a big one, perhaps
     * another address; its contents were moved, and it will be freed. */
    void (*resized)(const void *before, void *block, size_t size);
    void (*moves)(const void *block);

    /* Tells what has become of a block, after it was freed. */
    void (*died)(struct sample *sample);

    /* Returns free blocks that are kept for samples to their bins. The heap may be entered. */
    void (*give_back)(void);

    /* An observer has come to the probes, or gone. With the heap entered. */
    void (*observe)(bool comes);

    /* Sets the mean distance of samples in bytes; 0: none. False: there is no memory, and there are
     * none. */
    bool (*set_mean)(size_t bytes);

    /* Writes the live profile: see hakmem_profile_write. */
    int (*write_profile)(const char *path);

    /* Answers a request of an observer, in a thread of its own. */
    void (*answer)(uint32_t request);

    /* The line of a misuse was written, and the program is about to abort. Locks may be held. */
    void (*misuse)(const struct fatal_line *line);
};

/* NULL: there are no observers. Set once, by the constructor. Atomic: release on store pairs with
 * acquire on load. */
extern const struct trace *trace;

/* Changes with the mean; 0 while no samples are taken, or `trace` is NULL. Atomic: release on store
 * pairs with acquire on load, any thread. */
extern uint8_t trace_round;

/* The table of calls; absent if the folder is. */
const struct trace *trace_open(void) __attribute__((weak));

ALWAYS_INLINE const struct trace *trace_now(void)
{
    return ATOMIC_LOAD_ACQUIRE(&trace);
}

ALWAYS_INLINE bool trace_samples(void)
{
    return UNLIKELY(ATOMIC_LOAD_ACQUIRE(&trace_round) != 0);
}

/* The mean distance of samples in bytes, by the option sample_kib. */
ALWAYS_INLINE size_t trace_mean(long sample_kib)
{
    return sample_kib < 0 ? TRACE_EVERY : (size_t)sample_kib * KIB;
}

ALWAYS_INLINE void trace_give_back(void)
{
    const struct trace *now = trace_now();
    if (now)
        now->give_back();
}

#endif
