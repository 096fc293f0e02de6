/* The event log: births and deaths of samples, written to a file as they happen.
 *
 * The file is a shared mapping of records of fixed size (trace/log_file.h, docs/hakprof.md), so an
 * event is in the file whatever becomes of the process. A sample has one record: its birth fills
 * it, its death completes it. When the file may not grow any more, records of dead samples are
 * reused: the search takes about every second one that it meets, and the others count twice from
 * then on. So sums stay right, the past becomes coarse, and no live sample is lost.
 *
 * Nothing fails: lost events are counted, and one line on stderr says so. No function here
 * allocates, changes errno or waits for long. All may be called from any thread and from signal
 * handlers, but with no lock held: they make system calls now and then.
 *
 * A child of fork logs to a file of its own, which is made when the child first asks whether a site
 * is known. Handles of the parent mean nothing there; sites have to be logged again.
 *
 * How a sampler uses it:
 *
 *     if (log_is_on()) {
 *         if (!log_knows_site(site))
 *             log_site(site, frames, count, scope, now);
 *         sample->log_handle = log_birth(&birth);
 *     }
 *     ...
 *     log_death(sample->log_handle, &death);
 */
#ifndef TRACE_LOG_H
#define TRACE_LOG_H

#include "base/macros.h"
#include "scope/scope.h"

enum { LOG_FRAMES_MAX = 32 };

/* A frame that is no return address: a place of Python and its number among the sites. */
#define LOG_PYTHON ((uint64_t)1 << 63)
enum { LOG_FUNCTION_BYTES = SCOPE_PATH_BYTES, LOG_FILE_BYTES = 248 };

/* Where a sample lives, and in which log; 0: nowhere. */
typedef uint64_t log_handle;

enum log_birth_flags {
    LOG_GUARDED = 1 /* its end touches a page that cannot be accessed */
};

struct log_birth {
    uint64_t time_ns;         /* of os_clock_ns */
    uint64_t requested_bytes; /* requested by the program */
    uint64_t usable_bytes;    /* of the block */
    uint64_t weight_bytes;    /* how many allocated bytes the sample stands for */
    uint32_t site;            /* its number, see log_site */
    uint32_t thread;          /* the system's id */
    uint8_t size_class;       /* 0: a big block */
    uint8_t flags;            /* of enum log_birth_flags */
};

enum log_death_flags {
    LOG_REMOTE = 1, /* freed by a thread that did not allocate it */
    LOG_REALLOC = 2 /* realloc moved its contents to another block, or resized it */
};

struct log_death {
    uint64_t time_ns;
    uint32_t thread;
    uint8_t flags; /* of enum log_death_flags */
};

/* The tiers at one moment; all counts of bytes unless named otherwise. */
struct log_snapshot {
    uint64_t time_ns;
    uint64_t rss;            /* of the process, as the system counts it */
    uint64_t live_blocks;    /* number */
    uint64_t live;           /* usable bytes of blocks in use */
    uint64_t magazines;      /* free blocks in magazines of threads */
    uint64_t transfer;       /* free blocks in transfer caches */
    uint64_t slabs_free;     /* the rest of slabs: free blocks, ends, untouched pages */
    uint64_t page_heap_free; /* dirty free runs of superslabs */
    uint64_t big_cache;      /* freed big blocks that are kept, dirty */
    uint64_t metadata;       /* the allocator's own records */
    uint64_t mapped;         /* address space held for blocks */
    uint64_t committed;      /* of it, in use by slabs and big blocks */
    uint64_t purged;         /* given back since the start */
    uint64_t threads;        /* number of heaps in use */
    uint64_t malloc_calls;   /* number since the start */
    uint64_t free_calls;     /* number since the start */
    uint64_t tier_live[4];   /* of `live`, by tier: tiny, mid, large, big */
    uint64_t log;            /* of `rss`, at most: the log itself */
    uint64_t rss_highest;    /* the highest that `rss` has been since the program was started */
    uint64_t reserved[2];
};

/* How and where to log. */
struct log_settings {
    const char *path;           /* %p: the process id, %e: the program's name, %%: a percent sign */
    size_t limit_bytes;         /* the file grows up to here */
    uint64_t sample_mean_bytes; /* the mean distance of two samples */
    bool is_attached;           /* the process ran before */

    /* Fills a snapshot, except time_ns, rss, rss_highest and log. Called with no lock held, by one
     * thread at a time, from log_birth and log_death when the next one is due. */
    void (*take)(struct log_snapshot *snapshot);

    /* Writes a line to stderr. */
    void (*say)(const char *line, size_t length);
};

/* Opens the file, or prints why not. To be called by one thread at a time, while there is no log:
 * from the constructor, or when an observer asks for a recording. */
void log_start(const struct log_settings *settings);

/* Takes a last snapshot, unless the thread holds a lock, and marks the log as ended. */
void log_stop(void);

/* Ends the log of a process that goes on without one. Records that other threads are about to write
 * are lost, or go to the next log. */
void log_detach(void);

/* Whether log_start was called and found a place for the file. */
bool log_is_on(void);

/* Whether the log of this process has the site. */
bool log_knows_site(uint32_t site);

/* Logs a site: its return addresses, the innermost first, and the name of a scope, or "". Sites are
 * numbered from 1 without large gaps. The modules of the addresses are logged with it; the
 * addresses have to be on the calling thread's stack, so that no module is unloaded meanwhile. */
void log_site(
    uint32_t site, const uintptr_t *frames, unsigned count, const char *scope, uint64_t time_ns);

/* Logs a place of Python, which is numbered as sites are. `kinds`: how many bytes a letter has of
 * the function's name, and, eight bits higher, of its file's, which are as long as they may be. */
void log_place(
    uint32_t site, uint32_t line, unsigned kinds, const char *function, const char *file);

/* Logs a birth. 0 when there was no room. */
log_handle log_birth(const struct log_birth *birth);

/* Logs the death of a sample; once for each. */
void log_death(log_handle handle, const struct log_death *death);

#endif
