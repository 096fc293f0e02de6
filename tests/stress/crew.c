/* Runs one configuration: seats threads, replaces those that exit, and settles the accounts.
 *
 * A seat's work is done by a sequence of threads ("generations"), each of which exits while the
 * blocks of the seat live on. When all work is done the library's figures are compared three
 * times: the blocks it says are live with the blocks that the model holds, the same after all
 * were freed with the level before the run, and the calls it served with the calls made. */
#include "model.h"
#include "random.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    STACK_BYTES = 2 << 20, /* reserved; a sanitizer wants more than 900 KiB */
    GENERATION_LOG2_MIN = 9,
    GENERATION_LOG2_MAX = 16,
    LEASE_BYTES_MAX = 256 * 1024,
    SLOT_BYTES_USUAL = 4096, /* the mean of random_size is near 3.8 KiB */
    PROGRESS_NS = 200 * 1000 * 1000
};

static const char *const shortage = "stress: cannot start a thread: %s\n";

static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The library's figures with nothing of the calling thread left in magazines. */
static void read_tiers(struct hakmem_usage *tiers)
{
    hakmem_thread_flush();
    for (unsigned i = 0; i < TIERS; i++)
        hakmem_get_tier(i, &tiers[i], sizeof(tiers[i]));
}

static void *sitter(void *argument)
{
    struct seat *seat = argument;
    struct run *run = seat->run;

    worker_generation(seat);
    /* Half of the seats clear up themselves, the others leave their blocks to the main thread. */
    if (seat->operation == seat->operations && (seat->index & 1) != 0)
        worker_free_all(seat);
    pthread_mutex_lock(&run->lock);
    run->finished[run->finished_count++] = seat->index;
    pthread_cond_signal(&run->changed);
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

/* Threads run on the harness's own stacks: the C library would keep some of its own, with blocks
 * that belong to them, for threads to come, and the live figures could not be exact. */
static void start_thread(pthread_t *thread, void *stack, void *(*body)(void *), void *argument)
{
    pthread_attr_t attributes;
    int code;

    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK_BYTES);
    code = pthread_create(thread, &attributes, body, argument);
    pthread_attr_destroy(&attributes);
    if (code != 0) {
        fprintf(stderr, shortage, strerror(code));
        _exit(2);
    }
}

static void start_generation(struct seat *seat)
{
    uint64_t draw = random_next(&seat->random);
    unsigned log2 = GENERATION_LOG2_MIN +
                    random_below((unsigned)draw, GENERATION_LOG2_MAX - GENERATION_LOG2_MIN + 1);
    uint64_t length = ((uint64_t)1 << log2) + (draw >> 32 & (((uint64_t)1 << log2) - 1));
    uint64_t left = seat->operations - seat->operation;

    seat->generation_end = seat->operation + (length < left ? length : left);
    seat->generations++;
    start_thread(&seat->thread, seat->stack, sitter, seat);
}

static void show_progress(const struct run *run)
{
    uint64_t done = 0;

    for (unsigned i = 0; i < run->threads; i++)
        done += atomic_load_explicit(&run->seats[i].published, memory_order_relaxed);
    fprintf(
        stderr, "\rseed %llu, %u threads: %llu of %llu operations   ",
        (unsigned long long)run->seed, run->threads, (unsigned long long)done,
        (unsigned long long)run->operations);
}

/* Waits for a thread that is about to exit, at times showing progress. Returns its seat. */
static unsigned next_finished(struct run *run)
{
    unsigned index;

    pthread_mutex_lock(&run->lock);
    while (run->finished_count == 0) {
        if (!run->options->progress) {
            pthread_cond_wait(&run->changed, &run->lock);
            continue;
        }
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PROGRESS_NS;
        if (until.tv_nsec >= 1000 * 1000 * 1000) {
            until.tv_sec++;
            until.tv_nsec -= 1000 * 1000 * 1000;
        }
        if (pthread_cond_timedwait(&run->changed, &run->lock, &until) != 0)
            show_progress(run);
    }
    index = run->finished[--run->finished_count];
    pthread_mutex_unlock(&run->lock);
    return index;
}

static void supervise(struct run *run)
{
    unsigned working = run->threads;

    for (unsigned i = 0; i < run->threads; i++)
        start_generation(&run->seats[i]);
    while (working > 0) {
        struct seat *seat = &run->seats[next_finished(run)];

        pthread_join(seat->thread, NULL);
        if (seat->operation < seat->operations)
            start_generation(seat);
        else
            working--;
    }
    if (run->options->progress)
        fprintf(stderr, "\r%*s\r", 70, "");
}

/* Slots of a seat: as many as keep all seats together at half of the budget, a power of two. */
static uint32_t slots_for(const struct options *options, unsigned threads)
{
    uint64_t fitting = options->live_bytes_max / 2 / SLOT_BYTES_USUAL / threads;
    uint32_t slots = 8;

    while (slots < SLOTS_MAX && slots * 2 <= fitting)
        slots *= 2;
    return slots;
}

static bool is_hardened(void)
{
    long hardened = 0;

    return hakmem_option_get("hardened", &hardened) == 0 && hardened != 0;
}

static struct run *run_make(
    const struct options *options, const struct entries *entries, uint64_t seed, unsigned index)
{
    struct run *run = harness_map(sizeof(*run));
    pthread_condattr_t attributes;
    uint64_t fair;

    run->options = options;
    run->entries = entries;
    run->seed = seed;
    run->threads = options->threads[index];
    run->hardened = is_hardened();
    run->operations = options->operations / options->configurations +
                      (index < options->operations % options->configurations);
    run->slots_mask = slots_for(options, run->threads) - 1;
    fair = options->live_bytes_max / (8 * run->threads);
    run->lease_bytes = fair < LEASE_BYTES_MAX ? fair : LEASE_BYTES_MAX;
    atomic_init(&run->unleased, (int64_t)options->live_bytes_max);
    atomic_init(&run->unleased_low, (int64_t)options->live_bytes_max);
    pthread_mutex_init(&run->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&run->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    run->seats = harness_map(run->threads * sizeof(*run->seats));
    for (unsigned i = 0; i < run->threads; i++) {
        struct seat *seat = &run->seats[i];

        seat->run = run;
        seat->entries = entries;
        seat->slots = harness_map((run->slots_mask + 1) * sizeof(*seat->slots));
        seat->random = random_seeded(random_seeded(seed) + run->threads * THREADS_MAX + i);
        seat->index = i;
        seat->operations = run->operations / run->threads + (i < run->operations % run->threads);
        seat->since_purge = options->purge_every / run->threads * i;
        seat->stack = harness_map(STACK_BYTES);
    }
    return run;
}

static void run_destroy(struct run *run)
{
    for (unsigned i = 0; i < run->threads; i++) {
        harness_unmap(run->seats[i].slots, (run->slots_mask + 1) * sizeof(struct block));
        harness_unmap(run->seats[i].stack, STACK_BYTES);
    }
    harness_unmap(run->seats, run->threads * sizeof(*run->seats));
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->lock);
    harness_unmap(run, sizeof(*run));
}

static void *do_nothing(void *argument)
{
    return argument;
}

/* What the first thread of a process allocates for good must not count as a leak of the run. */
static void warm_up(void)
{
    void *stack = harness_map(STACK_BYTES);
    pthread_t thread;

    start_thread(&thread, stack, do_nothing, NULL);
    pthread_join(thread, NULL);
    harness_unmap(stack, STACK_BYTES);
}

/* Compares the live blocks that the library counts with those in slots and exchange places. */
static bool census_is_right(struct run *run, const struct hakmem_usage *before)
{
    struct hakmem_usage now[TIERS];
    uint64_t held = 0, requested = 0, counted = 0, counted_bytes = 0;

    for (unsigned i = 0; i < run->threads; i++)
        for (size_t slot = 0; slot <= run->slots_mask; slot++)
            if (run->seats[i].slots[slot].address != NULL) {
                held++;
                requested += run->seats[i].slots[slot].size;
            }
    for (size_t i = 0; i < EXCHANGE_PLACES; i++)
        if (run->places[i].block.address != NULL) {
            held++;
            requested += run->places[i].block.size;
        }
    read_tiers(now);
    for (unsigned i = 0; i < TIERS; i++) {
        counted += now[i].live_blocks - before[i].live_blocks;
        counted_bytes += now[i].live_bytes - before[i].live_bytes;
    }
    if (counted == held && counted_bytes >= requested)
        return true;
    report_complaint(
        run, "census: %llu blocks with %llu requested bytes are live, hakmem counts %llu with %llu",
        (unsigned long long)held, (unsigned long long)requested, (unsigned long long)counted,
        (unsigned long long)counted_bytes);
    return false;
}

/* Adds what the library counted during the run; true when it accounts for all that was done. */
static bool settle(
    struct run *run, const struct hakmem_usage *before, const struct hakmem_usage *after,
    const struct totals *own, struct totals *totals)
{
    uint64_t served = 0, taken_back = 0;
    bool clean = true;

    for (unsigned i = 0; i < TIERS; i++) {
        const struct hakmem_usage *old = &before[i], *now = &after[i];
        struct hakmem_usage *sum = &totals->tier[i];

        if (now->live_blocks != old->live_blocks || now->live_bytes != old->live_bytes) {
            report_complaint(
                run,
                "drift: after all was freed the %s tier has %lld live blocks (%lld bytes)"
                " more than before",
                tier_names[i], (long long)(now->live_blocks - old->live_blocks),
                (long long)(now->live_bytes - old->live_bytes));
            clean = false;
        }
        served += now->malloc_calls - old->malloc_calls;
        taken_back += now->free_calls - old->free_calls;
        sum->malloc_calls += now->malloc_calls - old->malloc_calls;
        sum->malloc_hits += now->malloc_hits - old->malloc_hits;
        sum->free_calls += now->free_calls - old->free_calls;
        sum->free_hits += now->free_hits - old->free_hits;
        sum->refills += now->refills - old->refills;
        sum->flushes += now->flushes - old->flushes;
        sum->remote_frees += now->remote_frees - old->remote_frees;
    }
    if (served < own->fresh || taken_back < own->freed) {
        report_complaint(
            run,
            "not served by hakmem: %llu allocations and %llu frees were made,"
            " it counts %llu and %llu",
            (unsigned long long)own->fresh, (unsigned long long)own->freed,
            (unsigned long long)served, (unsigned long long)taken_back);
        clean = false;
    }
    return clean;
}

/* Sums the seats up into `own` (this run) and `totals`. */
static void add_up(const struct run *run, struct totals *own, struct totals *totals)
{
    uint64_t peak = run->options->live_bytes_max - (uint64_t)atomic_load(&run->unleased_low);

    for (unsigned i = 0; i < run->threads; i++) {
        const struct seat *seat = &run->seats[i];

        totals->operations += seat->operation;
        totals->generations += seat->generations;
        totals->handed_over += seat->handed_over;
        totals->short_of_budget += seat->short_of_budget;
        own->fresh += seat->fresh;
        own->freed += seat->freed;
        for (unsigned op = 0; op < OP_COUNT; op++)
            totals->counts[op] += seat->counts[op];
    }
    totals->fresh += own->fresh;
    totals->freed += own->freed;
    if (peak > totals->peak_leased)
        totals->peak_leased = peak;
}

bool crew_run(
    const struct options *options, const struct entries *entries, uint64_t seed,
    unsigned configuration, struct totals *totals)
{
    struct run *run = run_make(options, entries, seed, configuration);
    struct totals own = {0};
    struct hakmem_usage before[TIERS], after[TIERS];
    double start;
    bool clean;

    report_now_running(run);
    warm_up();
    read_tiers(before);
    start = now_seconds();
    supervise(run);
    totals->seconds += now_seconds() - start;
    totals->threads = run->threads;
    if (walk_all)
        walk_all();
    clean = census_is_right(run, before);
    for (unsigned i = 0; i < run->threads; i++)
        worker_free_all(&run->seats[i]);
    worker_free_places(&run->seats[0]);
    if (walk_all)
        walk_all();
    read_tiers(after);
    add_up(run, &own, totals);
    clean = settle(run, before, after, &own, totals) && clean;
    report_now_running(NULL);
    run_destroy(run);
    return clean;
}
