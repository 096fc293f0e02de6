/* Threads that work together, the clock that they meet at, and tables of sizes. */
#include "lab_internal.h"
#include <pthread.h>

struct lab_outcome lab_outcome;

/* ---- Random numbers and sizes ---------------------------------------------------------------- */

uint64_t lab_seed(void)
{
    return lab_program.seed;
}

struct lab_random lab_random_stream(uint64_t stream)
{
    uint64_t state = lab_mix(lab_mix(lab_program.seed) + stream);
    return (struct lab_random){state ? state : 1};
}

const char *const lab_distributions[] = {"uniform", "doublings", "small", NULL};

/* A random power of two times `least`, `most` at most. */
static uint64_t draw_step(uint64_t least, uint64_t most, struct lab_random *random)
{
    uint64_t steps = 1;
    while (least << steps <= most) {
        steps++;
    }
    return least << lab_below(lab_random_next(random), steps);
}

/* A size from the doubling that begins at the smallest of `draws` such steps. */
static uint64_t draw_from_doublings(
    unsigned draws, uint64_t least, uint64_t most, struct lab_random *random)
{
    uint64_t low = most;
    for (unsigned i = 0; i < draws; i++) {
        uint64_t step = draw_step(least, most, random);
        low = step < low ? step : low;
    }
    uint64_t high = 2 * low - 1 < most ? 2 * low - 1 : most;
    return low + lab_below(lab_random_next(random), high - low + 1);
}

const struct lab_sizes *lab_sizes_create(
    enum lab_distribution distribution, uint64_t least, uint64_t most, struct lab_random *random)
{
    struct lab_sizes *sizes = lab_reserve(sizeof *sizes);
    for (size_t i = 0; i < LAB_SIZE_TABLE; i++) {
        uint64_t size =
            distribution == LAB_UNIFORM
                ? least + lab_below(lab_random_next(random), most - least + 1)
                : draw_from_doublings(distribution == LAB_SMALL ? 3 : 1, least, most, random);
        sizes->table[i] = (uint32_t)size;
    }
    return sizes;
}

const struct lab_sizes *lab_sizes_create_steps(
    uint64_t least, uint64_t most, uint64_t jitter, struct lab_random *random)
{
    struct lab_sizes *sizes = lab_reserve(sizeof *sizes);
    for (size_t i = 0; i < LAB_SIZE_TABLE; i++) {
        uint64_t step = draw_step(least, most, random);
        sizes->table[i] = (uint32_t)(step + lab_below(lab_random_next(random), jitter));
    }
    return sizes;
}

void lab_count_draws(
    struct lab_recorder *recorder, const struct lab_sizes *sizes, uint64_t first, uint64_t count)
{
    uint64_t rounds = count / LAB_SIZE_TABLE;
    uint64_t rest = count % LAB_SIZE_TABLE;
    for (uint64_t i = 0; i < LAB_SIZE_TABLE; i++) {
        lab_count_size(recorder, lab_sizes_at(sizes, first + i), rounds + (i < rest));
    }
}

/* ---- Meeting and clock ----------------------------------------------------------------------- */

/* All fields under `lock`, and so is the outcome while workers run. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t complete;
    uint64_t arrived; /* workers that wait in this round */
    uint64_t round;
    uint64_t clock_started_ns;
    uint64_t part_ns; /* what the clock has shown at its last stop */
} meeting = {.lock = PTHREAD_MUTEX_INITIALIZER, .complete = PTHREAD_COND_INITIALIZER};

/* Waits for all workers; the last to arrive calls `at_last` before it wakes the others.
 * Returns what the clock has shown at its last stop. */
static uint64_t meet(const struct lab_worker *worker, void (*at_last)(void))
{
    pthread_mutex_lock(&meeting.lock);
    if (++meeting.arrived == worker->threads) {
        at_last();
        meeting.arrived = 0;
        meeting.round++;
        pthread_cond_broadcast(&meeting.complete);
    } else {
        uint64_t round = meeting.round;
        while (meeting.round == round) {
            pthread_cond_wait(&meeting.complete, &meeting.lock);
        }
    }
    uint64_t part_ns = meeting.part_ns;
    pthread_mutex_unlock(&meeting.lock);
    return part_ns;
}

static void do_nothing(void)
{
}

static void start_clock(void)
{
    meeting.clock_started_ns = lab_now_ns();
}

static void stop_clock(void)
{
    meeting.part_ns = lab_now_ns() - meeting.clock_started_ns;
    lab_outcome.measured_ns += meeting.part_ns;
}

void lab_meet(struct lab_worker *worker)
{
    meet(worker, do_nothing);
}

void lab_clock_start(struct lab_worker *worker)
{
    meet(worker, start_clock);
}

uint64_t lab_clock_stop(struct lab_worker *worker)
{
    return meet(worker, stop_clock);
}

/* ---- Workers --------------------------------------------------------------------------------- */

struct thread {
    struct lab_worker worker;
    void (*body)(struct lab_worker *worker);
    pthread_t handle;
};

static void *thread_main(void *argument)
{
    struct thread *thread = argument;
    thread->body(&thread->worker);
    return NULL;
}

void lab_run(uint64_t threads, void (*body)(struct lab_worker *worker))
{
    struct thread *all = lab_reserve(threads * sizeof *all);
    for (uint64_t i = 0; i < threads; i++) {
        all[i].worker.index = i;
        all[i].worker.threads = threads;
        all[i].worker.random = lab_random_stream(i);
        all[i].body = body;
        lab_recorder_open(&all[i].worker.recorder);
    }
    for (uint64_t i = 1; i < threads; i++) {
        int error = pthread_create(&all[i].handle, NULL, thread_main, &all[i]);
        if (error) {
            lab_fail("cannot start thread %llu: %s", (unsigned long long)i, strerror(error));
        }
    }
    thread_main(&all[0]);
    for (uint64_t i = 0; i < threads; i++) {
        if (i > 0) {
            pthread_join(all[i].handle, NULL);
        }
        lab_recorder_close(&lab_outcome.total, &all[i].worker.recorder);
    }
    lab_release(all, threads * sizeof *all);
}

struct errand {
    void (*body)(void *argument);
    void *argument;
};

static void *errand_main(void *argument)
{
    const struct errand *errand = argument;
    errand->body(errand->argument);
    return NULL;
}

void lab_run_apart(void (*body)(void *argument), void *argument)
{
    struct errand errand = {body, argument};
    pthread_t handle;
    int error = pthread_create(&handle, NULL, errand_main, &errand);
    if (error) {
        lab_fail("cannot start a thread: %s", strerror(error));
    }
    pthread_join(handle, NULL);
}

uint64_t lab_share(const struct lab_worker *worker, uint64_t total)
{
    return total / worker->threads + (worker->index < total % worker->threads);
}
