/* The layout of a .hakprof file, as docs/hakprof.md tells it to others.
 *
 *     | header, 64 KiB | extent | extent | extent | ...        extents of 64 KiB
 *                       | head, 64 bytes | record | record | ...   of one kind
 *
 * All numbers are little-endian and of the size given here; reserved fields are 0. The file is
 * written by many threads without a lock and may end at any moment, so the first word of each
 * record says whether it is whole, and is stored last.
 */
#ifndef TRACE_LOG_FILE_H
#define TRACE_LOG_FILE_H

#include "base/macros.h"
#include "scope/scope.h"
#include "trace/log.h"

#define LOG_MAGIC "hakprof\n"
#define LOG_EXTENT_MAGIC 0x74786568u /* "hext" */

enum {
    LOG_VERSION = 1,
    LOG_HEADER_BYTES = 64 * 1024,
    LOG_EXTENT_BYTES = 64 * 1024,
    LOG_TEXT_BYTES = 4096
};

/* Every field but the texts is atomic, any thread. */
struct log_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint32_t extent_bytes;
    uint32_t extents;         /* in use; each is whole before it is counted */
    uint32_t record_bytes[4]; /* by kind - 1 */
    uint64_t start_ns;        /* of the monotonic clock, as all times here */
    uint64_t start_unix_ns;   /* the same moment, since 1970 */
    uint64_t last_ns;         /* time of the last event */
    uint32_t process;
    uint32_t parent;   /* in a child of fork: the parent process, if it had a log; else 0 */
    uint32_t ended;    /* an enum log_end */
    uint32_t attached; /* 1: the process ran before the log began */
    uint64_t sample_mean_bytes;
    uint64_t lost_samples; /* births for which there was no room */
    uint64_t lost_bytes;   /* sum of their weights */
    uint64_t lost_sites;
    uint64_t lost_modules;
    uint64_t thinned_samples; /* dead ones whose records were reused */
    uint64_t rows[4];         /* by kind - 1: records that may be in use, counted from the first */
    char writer[64];          /* name and version of the library */
    char program[LOG_TEXT_BYTES]; /* path of the executable; ends with a NUL, as do all texts */
    char command[LOG_TEXT_BYTES]; /* the arguments, each ended by a NUL, cut off */
    uint32_t command_bytes;
};

/* How a log has ended; LOG_OPEN: not yet, or not in good order. */
enum log_end { LOG_OPEN, LOG_ENDED, LOG_DETACHED };

enum log_kind { LOG_SITES = 1, LOG_SAMPLES, LOG_SNAPSHOTS, LOG_MODULES, LOG_KINDS = 4 };

struct log_extent {
    uint32_t magic;
    uint32_t kind;
    uint32_t order;   /* among the extents of its kind, from 0 */
    uint32_t records; /* that it has room for */
    uint64_t reserved[6];
};

enum log_state { LOG_FREE, LOG_BEING_WRITTEN, LOG_WHOLE, LOG_DEAD };

/* A site. Its number is its place among the records of its kind; number 0 collects the samples
 * without a site. The sums count every sample, including those thinned out. A place of Python has
 * no frames, but its line in `frame[0]`, its file behind that, and the function in `scope`. */
struct log_site_record {
    uint32_t state;  /* LOG_FREE, LOG_BEING_WRITTEN or LOG_WHOLE */
    uint32_t frames; /* number of these, up to LOG_FRAMES_MAX */
    uint64_t time_ns;
    uint64_t born_samples, born_bytes; /* bytes by weight */
    uint64_t dead_samples, dead_bytes;
    uint64_t remote_bytes, realloc_bytes; /* of dead_bytes */
    uint64_t frame[LOG_FRAMES_MAX];
    char scope[SCOPE_PATH_BYTES]; /* its name; ends with a NUL */
};

struct log_sample_record {
    uint32_t state; /* LOG_WHOLE: the sample lives */
    uint32_t site;
    uint64_t birth_ns;
    uint64_t death_ns;
    uint64_t requested_bytes;
    uint64_t usable_bytes;
    uint64_t weight_bytes; /* to be doubled `thinned` times */
    uint32_t birth_thread, death_thread;
    uint8_t size_class;
    uint8_t birth_flags, death_flags;
    uint8_t thinned;
    uint32_t reserved;
};

/* Sorted by time, except while every second one is dropped: then some appear twice. */
struct log_snapshot_record {
    uint32_t state;
    uint32_t fields; /* of the snapshot, as the writer knows it */
    struct log_snapshot snapshot;
};

enum { LOG_BUILD_ID_BYTES = 32, LOG_PATH_BYTES = 904 };

/* A loaded file, from the moment it was first seen, until a later record has the same addresses. */
struct log_module_record {
    uint32_t state;
    uint32_t build_id_bytes;
    uint64_t time_ns;
    uint64_t start, end; /* addresses */
    uint64_t bias;       /* address less this: as in the file's program headers */
    uint8_t build_id[LOG_BUILD_ID_BYTES];
    uint64_t reserved[5];
    uint32_t path_bytes; /* of the whole path; `path` may hold less of it */
    uint32_t reserved_too;
    char path[LOG_PATH_BYTES];
};

_Static_assert(sizeof(struct log_header) <= LOG_HEADER_BYTES, "the header has room");
_Static_assert(sizeof(struct log_extent) == 64, "extent heads are 64 bytes");
_Static_assert(sizeof(struct log_site_record) == 416, "sites are 416 bytes");
_Static_assert(sizeof(struct log_sample_record) == 64, "samples are a cache line");
_Static_assert(sizeof(struct log_snapshot_record) == 200, "snapshots are 200 bytes");
_Static_assert(sizeof(struct log_module_record) == 1024, "modules are 1 KiB");

#endif
