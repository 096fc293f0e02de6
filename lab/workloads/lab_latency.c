/* What a thread has done, and how long its calls took.
 *
 * A histogram of latencies has buckets that grow with the value: 32 for every doubling, so that a
 * percentile is right to about 3% whatever its size. By the wall clock they count ticks of the
 * processor's time stamp counter where that runs at a constant rate, else nanoseconds. Both are
 * turned into nanoseconds in the report alone, less the smallest time that an empty measurement
 * took. The longest of many calls by that clock is one that another program interrupted, so there
 * is the processor time of the calling thread as well. */
#include "lab_internal.h"
#include <errno.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#define DOUBLING_BUCKETS 32
#define BUCKETS ((64 - 5 + 1) * DOUBLING_BUCKETS)

struct histogram {
    uint64_t counts[BUCKETS];
    uint64_t largest;
};

struct lab_latency {
    struct histogram allocate; /* malloc, calloc, realloc, aligned_alloc, posix_memalign, new */
    struct histogram release;  /* free, delete */
};

/* Written by lab_latency_begin(), constant afterwards. */
static struct {
    bool counter;         /* read the time stamp counter */
    uint64_t ticks_begin; /* both clocks at the begin, to find the rate at the end */
    uint64_t ns_begin;
    uint64_t cost; /* ticks of an empty measurement */
} timer;

/* ---- Clock ----------------------------------------------------------------------------------- */

/* True: the counter runs at one rate at all times and on all processors. */
static bool counter_is_constant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#else
    return false;
#endif
}

static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    if (LAB_LIKELY(timer.counter)) {
        /* The fences keep the call that is timed from overlapping with the reading. */
        _mm_lfence();
        uint64_t ticks = __rdtsc();
        _mm_lfence();
        return ticks;
    }
#endif
    struct timespec now;
    bool wall = lab_program.latency == LAB_WALL;
    clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void lab_latency_begin(void)
{
    timer.counter = lab_program.latency == LAB_WALL && counter_is_constant();
    timer.ns_begin = lab_now_ns();
    timer.ticks_begin = ticks_now();
    timer.cost = UINT64_MAX;
    for (int i = 0; i < 1000; i++) {
        uint64_t begin = ticks_now();
        uint64_t cost = ticks_now() - begin;
        timer.cost = cost < timer.cost ? cost : timer.cost;
    }
}

/* Nanoseconds per tick, from the time since lab_latency_begin(), but at least 10 ms of it. */
static double tick_ns(void)
{
    uint64_t ns, ticks;
    do {
        ticks = ticks_now() - timer.ticks_begin;
        ns = lab_now_ns() - timer.ns_begin;
    } while (ns < 10000000);
    return timer.counter ? (double)ns / (double)ticks : 1;
}

/* ---- Histogram ------------------------------------------------------------------------------- */

/* The first DOUBLING_BUCKETS values have a bucket each. */
static size_t bucket_of(uint64_t value)
{
    if (value < DOUBLING_BUCKETS) {
        return value;
    }
    unsigned shift = 63 - 5 - (unsigned)__builtin_clzll(value);
    return (size_t)shift * DOUBLING_BUCKETS + (value >> shift);
}

/* The value in the middle of a bucket. */
static double bucket_middle(size_t bucket)
{
    if (bucket < 2 * DOUBLING_BUCKETS) {
        return (double)bucket;
    }
    size_t shift = bucket / DOUBLING_BUCKETS - 1;
    double width = (double)(UINT64_C(1) << shift);
    return ((double)(bucket - shift * DOUBLING_BUCKETS) + 0.5) * width;
}

static void histogram_add(struct histogram *histogram, uint64_t begin)
{
    uint64_t elapsed = ticks_now() - begin;
    elapsed = elapsed > timer.cost ? elapsed - timer.cost : 0;
    histogram->counts[bucket_of(elapsed)]++;
    histogram->largest = elapsed > histogram->largest ? elapsed : histogram->largest;
}

static void histogram_merge(struct histogram *into, const struct histogram *from)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        into->counts[i] += from->counts[i];
    }
    into->largest = into->largest > from->largest ? into->largest : from->largest;
}

static uint64_t histogram_total(const struct histogram *histogram)
{
    uint64_t total = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        total += histogram->counts[i];
    }
    return total;
}

/* The smallest value that at least `share` of all values do not exceed. */
static double histogram_percentile(const struct histogram *histogram, double share)
{
    double wanted = share * (double)histogram_total(histogram);
    uint64_t seen = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        seen += histogram->counts[i];
        if (seen > 0 && (double)seen >= wanted) {
            double middle = bucket_middle(i);
            return middle < (double)histogram->largest ? middle : (double)histogram->largest;
        }
    }
    return 0;
}

static void histogram_write(FILE *out, const struct histogram *histogram, double tick)
{
    static const struct {
        const char *name;
        double share;
    } points[] = {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};
    fputc('{', out);
    for (size_t i = 0; i < LAB_LENGTH(points); i++) {
        double value = histogram_percentile(histogram, points[i].share);
        fprintf(out, "\"%s\":%.1f,", points[i].name, value * tick);
    }
    fprintf(out, "\"max\":%.1f}", (double)histogram->largest * tick);
}

void lab_latency_write(FILE *out, const struct lab_latency *latency)
{
    if (!latency) {
        fputs("null", out);
        return;
    }
    double tick = tick_ns();
    fputs("{\"malloc\":", out);
    histogram_write(out, &latency->allocate, tick);
    fputs(",\"free\":", out);
    histogram_write(out, &latency->release, tick);
    fputc('}', out);
}

void lab_latency_figures(const struct lab_recorder *total)
{
    struct histogram both = total->latency->allocate;
    histogram_merge(&both, &total->latency->release);
    uint64_t timed = histogram_total(&both);
    if (timed > total->operations) {
        lab_fail(
            "counted %llu operations but timed %llu calls", (unsigned long long)total->operations,
            (unsigned long long)timed);
    }
    if (lab_program.latency == LAB_PROCESSOR) {
        lab_figure((double)both.largest, "longest_call_ns");
        lab_figure(histogram_percentile(&both, 0.9999), "p9999_call_ns");
    }
}

/* ---- Calls ----------------------------------------------------------------------------------- */

void *lab_timed_malloc(struct lab_latency *latency, size_t size)
{
    uint64_t begin = ticks_now();
    void *block = malloc(size);
    histogram_add(&latency->allocate, begin);
    return block;
}

void *lab_timed_calloc(struct lab_latency *latency, size_t count, size_t size)
{
    uint64_t begin = ticks_now();
    void *block = calloc(count, size);
    histogram_add(&latency->allocate, begin);
    return block;
}

void *lab_timed_realloc(struct lab_latency *latency, void *block, size_t size)
{
    uint64_t begin = ticks_now();
    void *moved = realloc(block, size);
    histogram_add(&latency->allocate, begin);
    return moved;
}

void *lab_timed_aligned_alloc(struct lab_latency *latency, size_t alignment, size_t size)
{
    uint64_t begin = ticks_now();
    void *block = aligned_alloc(alignment, size);
    histogram_add(&latency->allocate, begin);
    return block;
}

int lab_timed_posix_memalign(
    struct lab_latency *latency, void **block, size_t alignment, size_t size)
{
    uint64_t begin = ticks_now();
    int error = posix_memalign(block, alignment, size);
    histogram_add(&latency->allocate, begin);
    return error;
}

void lab_timed_free(struct lab_latency *latency, void *block)
{
    uint64_t begin = ticks_now();
    free(block);
    histogram_add(&latency->release, begin);
}

void *lab_timed_new(struct lab_latency *latency, size_t size)
{
    uint64_t begin = ticks_now();
    void *block = lab_operators.allocate(size);
    histogram_add(&latency->allocate, begin);
    return block;
}

void lab_timed_delete(struct lab_latency *latency, void *block, size_t size)
{
    uint64_t begin = ticks_now();
    lab_operators.release(block, size);
    histogram_add(&latency->release, begin);
}

void lab_out_of_memory(const char *call, size_t size)
{
    lab_fail("%s of %zu bytes failed", call, size);
}

void lab_corrupt(size_t size, size_t offset, uint32_t expected, uint32_t found)
{
    lab_fail(
        "a block of %zu bytes was changed: at offset %zu it holds %08x instead of %08x", size,
        offset, found, expected);
}

/* ---- Recorders ------------------------------------------------------------------------------- */

void lab_recorder_open(struct lab_recorder *recorder)
{
    if (lab_program.latency) {
        recorder->latency = lab_reserve(sizeof *recorder->latency);
    }
}

void lab_recorder_close(struct lab_recorder *into, struct lab_recorder *from)
{
    into->operations += from->operations;
    into->checksum += from->checksum;
    for (size_t i = 0; i < LAB_SIZE_BUCKETS; i++) {
        into->sizes[i] += from->sizes[i];
    }
    if (from->latency) {
        histogram_merge(&into->latency->allocate, &from->latency->allocate);
        histogram_merge(&into->latency->release, &from->latency->release);
        lab_release(from->latency, sizeof *from->latency);
    }
}

/* ---- Outcomes of other processes ------------------------------------------------------------- */

static void write_all(int file, const void *data, size_t length)
{
    const char *at = data;
    while (length > 0) {
        ssize_t written = write(file, at, length);
        if (written < 0 && errno != EINTR) {
            lab_fail("cannot send what was recorded: %s", strerror(errno));
        }
        at += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
}

static void read_all(int file, void *data, size_t length)
{
    char *at = data;
    while (length > 0) {
        ssize_t count = read(file, at, length);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            lab_fail("a process ended before it had sent what it recorded");
        }
        at += count > 0 ? count : 0;
        length -= count > 0 ? (size_t)count : 0;
    }
}

void lab_outcome_send(const struct lab_outcome *outcome, int file)
{
    write_all(file, outcome, sizeof *outcome);
    if (outcome->total.latency) {
        write_all(file, outcome->total.latency, sizeof *outcome->total.latency);
    }
}

void lab_outcome_receive(struct lab_outcome *outcome, int file)
{
    struct lab_outcome sent;
    read_all(file, &sent, sizeof sent);
    /* The pointer is one of the other process. */
    sent.total.latency = NULL;
    lab_recorder_open(&sent.total);
    if (sent.total.latency) {
        read_all(file, sent.total.latency, sizeof *sent.total.latency);
    }
    lab_recorder_close(&outcome->total, &sent.total);
    outcome->measured_ns += sent.measured_ns;
}
