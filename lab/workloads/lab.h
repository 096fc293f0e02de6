/* What the workload programs share: flags, random numbers, sizes, blocks, threads, clock, report.
 *
 * A workload is one file. It has a table of flags and one or more functions that do the work:
 *
 *     static struct { uint64_t operations, threads, size_min, size_max; } settings;
 *     static const struct lab_flag flags[] = {
 *         LAB_OPERATIONS(&settings.operations, 20000000),
 *         LAB_THREADS(&settings.threads, 1),
 *         LAB_SIZES(&settings.size_min, 16, &settings.size_max, 1040),
 *     };
 *
 *     static void work(struct lab_worker *worker)
 *     {
 *         ...set up...
 *         lab_clock_start(worker);
 *         ...lab_block_allocate(), lab_block_free(), lab_malloc()...
 *         lab_clock_stop(worker);
 *         worker->recorder.operations += ...;
 *     }
 *
 *     int main(int argc, char **argv)
 *     {
 *         lab_begin("name", "What it does.", flags, LAB_LENGTH(flags), argc, argv);
 *         lab_run(settings.threads, work);
 *         return lab_report();
 *     }
 *
 * Three rules make two runs comparable, whatever allocator serves them. The work is fixed by the
 * flags and never by time. What is written into a block depends on the seed and on the block's
 * number, never on its address. A checksum is a sum, so that the order of threads cannot matter.
 *
 * The program's own tables come from lab_reserve(), that is from the kernel: the allocator serves
 * the workload and nothing else.
 *
 * Thread rule: a recorder and a worker belong to one thread at a time. Settings, tables of sizes
 * and flags are constant once lab_run() is called. */
#ifndef LAB_H
#define LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LAB_LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define LAB_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define LAB_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* ---- Flags (lab_flags.c) --------------------------------------------------------------------- */

enum lab_flag_kind {
    LAB_COUNT, /* a whole number; the suffixes K, M, G mean powers of 1000 */
    LAB_BYTES, /* a size; the suffixes K, M, G mean powers of 1024 */
    LAB_CHOICE /* one of `choices`; the variable holds its index */
};

/* One row of a table of flags. */
struct lab_flag {
    const char *name; /* without the dashes */
    enum lab_flag_kind kind;
    uint64_t *variable;         /* where the value goes */
    uint64_t standard;          /* the value where the flag is not given */
    uint64_t least, most;       /* LAB_COUNT and LAB_BYTES: the range, both ends included */
    const char *unit;           /* LAB_COUNT: of what; shown by --help */
    const char *const *choices; /* LAB_CHOICE: the words, closed by NULL */
    const char *help;           /* the meaning, for --help */
};

/* The smallest request: the first and the last 32-bit word of a block must not overlap. */
#define LAB_SIZE_LEAST 8
#define LAB_SIZE_MOST (UINT64_C(1) << 30)

/* The rows that several workloads share. Where --size-min and --size-max are both in the table,
 * lab_begin() rejects a minimum above the maximum. --seed and --latency are in every table. */
#define LAB_OPERATIONS(where, number)                                                              \
    {                                                                                              \
        .name = "operations", .kind = LAB_COUNT, .variable = (where), .standard = (number),        \
        .least = 1, .most = UINT64_C(1000000000000), .unit = "calls",                              \
        .help = "calls of the allocator that the run makes, about"                                 \
    }
#define LAB_THREADS(where, number)                                                                 \
    {                                                                                              \
        .name = "threads", .kind = LAB_COUNT, .variable = (where), .standard = (number),           \
        .least = 1, .most = 4096, .unit = "threads", .help = "threads that work at the same time"  \
    }
#define LAB_WORKING_SET(where, number)                                                             \
    {                                                                                              \
        .name = "working-set", .kind = LAB_COUNT, .variable = (where), .standard = (number),       \
        .least = 1, .most = 100000000, .unit = "blocks",                                           \
        .help = "blocks that each thread keeps alive"                                              \
    }
#define LAB_SIZES(where_min, smallest, where_max, largest)                                         \
    {.name = "size-min",                                                                           \
     .kind = LAB_BYTES,                                                                            \
     .variable = (where_min),                                                                      \
     .standard = (smallest),                                                                       \
     .least = LAB_SIZE_LEAST,                                                                      \
     .most = LAB_SIZE_MOST,                                                                        \
     .help = "smallest request"},                                                                  \
    {                                                                                              \
        .name = "size-max", .kind = LAB_BYTES, .variable = (where_max), .standard = (largest),     \
        .least = LAB_SIZE_LEAST, .most = LAB_SIZE_MOST, .help = "largest request"                  \
    }

/* Parses the command line into the flags' variables; the last occurrence of a flag wins. Answers
 * --help and ends. Ends with status 2 and one line on stderr when a flag makes no sense. */
void lab_begin(
    const char *workload, const char *summary, const struct lab_flag *flags, size_t flag_count,
    int argc, char **argv);

/* The flag by which a workload that starts itself tells its children from itself. */
#define LAB_CHILD_FLAG "child"
#define LAB_CHILD(where)                                                                           \
    {                                                                                              \
        .name = LAB_CHILD_FLAG, .kind = LAB_COUNT, .variable = (where), .standard = 0, .least = 0, \
        .most = 1000000,                                                                           \
        .help =                                                                                    \
            "for the program itself: the number of the process, 0 for the one that starts them"    \
    }

/* Ends with status 2: the value of --`flag` makes no sense beside the others. */
__attribute__((noreturn, format(printf, 2, 3))) void lab_reject(
    const char *flag, const char *format, ...);

/* Ends with status 2 where the value of --operations is below `least`, which is what it takes `to`
 * do one round of the work, e.g. "to allocate and free the working set". */
void lab_require_operations(uint64_t operations, uint64_t least, const char *to);

/* ---- The program: failure, time, memory (lab_program.c) -------------------------------------- */

/* Ends with status 1 and one line on stderr. May be called by any thread. */
__attribute__((noreturn, cold, format(printf, 1, 2))) void lab_fail(const char *format, ...);

/* The time of CLOCK_MONOTONIC in nanoseconds. */
uint64_t lab_now_ns(void);

/* Zeroed memory for the program's own tables, from the kernel. Pages not touched cost nothing. */
void *lab_reserve(size_t bytes);
void lab_release(void *memory, size_t bytes);

/* The resident set in KiB, as /proc/self/statm has it; allocates nothing. */
uint64_t lab_rss_kib(void);

/* ---- Random numbers -------------------------------------------------------------------------- */

/* A xorshift generator; the state is never 0. */
struct lab_random {
    uint64_t state;
};

/* Scrambles a number: neighbouring numbers get unrelated results. */
static inline uint64_t lab_mix(uint64_t number)
{
    number += 0x9e3779b97f4a7c15;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
    number = (number ^ number >> 27) * 0x94d049bb133111eb;
    return number ^ number >> 31;
}

/* The value of --seed. */
uint64_t lab_seed(void);

/* The `stream`th generator of --seed; every stream is a sequence of its own. */
struct lab_random lab_random_stream(uint64_t stream);

static inline uint64_t lab_random_next(struct lab_random *random)
{
    uint64_t state = random->state;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    random->state = state;
    return state * 0x2545f4914f6cdd1d;
}

/* A number below `limit`, of the upper half of a draw; 0 < limit <= 2^32. The lower half remains
 * for another use, e.g. as a tag. */
static inline uint64_t lab_below(uint64_t draw, uint64_t limit)
{
    return (draw >> 32) * limit >> 32;
}

/* ---- Recorder: what a thread has done (lab_latency.c) ---------------------------------------- */

/* Bucket n counts the requests of up to 2^n bytes that do not fit the bucket before. */
#define LAB_SIZE_BUCKETS 48

struct lab_latency; /* histograms of the time of calls; exists with --latency only */

/* Owner thread only, until it is merged. Counts nothing by itself but latencies: the workload adds
 * its operations and sizes, once a loop where it can. */
struct lab_recorder {
    uint64_t operations; /* calls of malloc, calloc, realloc, aligned ones and free */
    uint64_t checksum;   /* sum over the contents of the blocks */
    struct lab_latency *latency;
    uint64_t sizes[LAB_SIZE_BUCKETS];
};

/* Counts `times` requests of `size` bytes in the histogram of sizes. */
static inline void lab_count_size(struct lab_recorder *recorder, size_t size, uint64_t times)
{
    recorder->sizes[size <= 1 ? 0 : 64 - __builtin_clzll(size - 1)] += times;
}

/* ---- Sizes (lab.c) --------------------------------------------------------------------------- */

/* A power of two, and small enough to stay in a level 2 cache. */
#define LAB_SIZE_TABLE 16384

/* Sizes drawn beforehand, used round and round: a draw costs one load. */
struct lab_sizes {
    uint32_t table[LAB_SIZE_TABLE];
};

enum lab_distribution {
    LAB_UNIFORM,   /* every size is as likely as any other */
    LAB_DOUBLINGS, /* every doubling is as likely as any other: many small ones, few large */
    LAB_SMALL      /* the smallest of three doublings drawn so: a long tail of few large ones */
};

/* The row of a table of flags by which a distribution is chosen. */
extern const char *const lab_distributions[];
#define LAB_DISTRIBUTION(where, usual)                                                             \
    {                                                                                              \
        .name = "sizes", .kind = LAB_CHOICE, .variable = (where), .standard = (usual),             \
        .choices = lab_distributions,                                                              \
        .help = "which sizes are likely: all, all doublings, or small ones"                        \
    }

/* Draws a table of sizes from `least` to `most`. It lives as long as the program. */
const struct lab_sizes *lab_sizes_create(
    enum lab_distribution distribution, uint64_t least, uint64_t most, struct lab_random *random);

/* The same with sizes in steps: `least` times a power of two, `most` at most, plus 0 up to
 * `jitter` - 1; jitter > 0. */
const struct lab_sizes *lab_sizes_create_steps(
    uint64_t least, uint64_t most, uint64_t jitter, struct lab_random *random);

static inline uint32_t lab_sizes_at(const struct lab_sizes *sizes, uint64_t index)
{
    return sizes->table[index % LAB_SIZE_TABLE];
}

/* Counts the `count` draws from index `first` on in the histogram; for use outside the clock. */
void lab_count_draws(
    struct lab_recorder *recorder, const struct lab_sizes *sizes, uint64_t first, uint64_t count);

/* ---- Threads and the clock (lab.c) ----------------------------------------------------------- */

/* One of the threads that lab_run() starts. */
struct lab_worker {
    _Alignas(128) struct lab_recorder recorder; /* no cache line with the neighbour's */
    struct lab_random random;                   /* stream `index` */
    uint64_t index;                             /* 0 up to threads - 1 */
    uint64_t threads;
};

/* Runs `body` in as many threads, one of them the caller: with one thread the program stays
 * single-threaded. Afterwards adds what the workers recorded to the report. */
void lab_run(uint64_t threads, void (*body)(struct lab_worker *worker));

/* Runs `body` in a new thread and returns when the thread has ended. */
void lab_run_apart(void (*body)(void *argument), void *argument);

/* The part of `total` that this worker has to do; the parts add up to the total. */
uint64_t lab_share(const struct lab_worker *worker, uint64_t total);

/* Waits until all workers are here. */
void lab_meet(struct lab_worker *worker);

/* All workers meet, then the clock runs: set-up before it is not measured. A body calls start and
 * stop in pairs, as often as it likes; the parts between a stop and the next start do not count.
 * Calls that count as operations belong between them, unless what they leave behind is measured. */
void lab_clock_start(struct lab_worker *worker);

/* Stops the clock when the last worker arrives. Returns the nanoseconds since it was started. */
uint64_t lab_clock_stop(struct lab_worker *worker);

/* ---- Processes (lab_process.c) --------------------------------------------------------------- */

/* Starts this program once more, with the same flags and --child `number`, which is in its table,
 * and waits for its end. What it recorded and its clock showed is added to the report. Main thread
 * only. */
void lab_run_child(uint64_t number);

/* What the child calls in place of lab_report(). Returns the exit status of the program. */
int lab_report_to_parent(void);

/* ---- Report (lab_report.c) ------------------------------------------------------------------- */

/* Adds a number to the report; `format` makes its name, with the unit last. One thread at a time.
 */
__attribute__((format(printf, 2, 3))) void lab_figure(double value, const char *format, ...);

/* Writes the JSON object and returns the exit status of the program. */
int lab_report(void);

#include "lab_block.h"

#endif
