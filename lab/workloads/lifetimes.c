/* lifetimes: blocks of drawn sizes live for drawn times, in threads that may share and may end.
 *
 * A lane is a table of slots. At each step a slot is drawn; its block goes, and a new one takes its
 * place. With --lives even each slot is as likely as any other: a block lives for as many steps as
 * there are slots, on average. With --lives skewed the slots are in groups of 1, 2, 4, 8 and so on,
 * and each group is as likely as any other: many blocks live for a few steps, few for very long.
 *
 * With --shared some of the new blocks are exchanged for what another thread left in a table of
 * all: they are freed by whoever finds them. With --renew a thread ends after some steps, and a new
 * one goes on with its lane.
 *
 * A slot is one word, so that it can be exchanged: the address of a block, and above it the index
 * of its size. The tag of a block is its first word.
 *
 * Thread rule: a lane, with its worker, belongs to the worker's thread, and from lab_run_apart()
 * until its return to the thread that serves. The shared table is exchanged word by word; a block
 * belongs to the thread that holds its word. */
#include "lab.h"

#include <stdatomic.h>

static struct {
    uint64_t operations, threads, working_set, lives, sizes, size_min, size_max, shared, renew;
    uint64_t call;
} settings;

enum { EVEN, SKEWED };
enum { MALLOC, CALLOC, NEW };

static const char *const lives[] = {"even", "skewed", NULL};
static const char *const calls[] = {"malloc", "calloc", "new", NULL};

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 10000000),
    LAB_THREADS(&settings.threads, 1),
    LAB_WORKING_SET(&settings.working_set, 20000),
    {.name = "lives",
     .kind = LAB_CHOICE,
     .variable = &settings.lives,
     .standard = SKEWED,
     .choices = lives,
     .help = "how long blocks live: each slot is as likely to change, or many blocks live shortly"},
    LAB_DISTRIBUTION(&settings.sizes, LAB_SMALL),
    LAB_SIZES(&settings.size_min, 8, &settings.size_max, 256 << 10),
    {.name = "shared",
     .kind = LAB_COUNT,
     .variable = &settings.shared,
     .standard = 0,
     .least = 0,
     .most = 100,
     .unit = "percent",
     .help = "of the blocks, those that are exchanged with other threads"},
    {.name = "renew",
     .kind = LAB_COUNT,
     .variable = &settings.renew,
     .standard = 0,
     .least = 0,
     .most = UINT64_C(1000000000000),
     .unit = "steps",
     .help = "steps of a thread until it ends and a new one takes its place; 0: it stays"},
    {.name = "call",
     .kind = LAB_CHOICE,
     .variable = &settings.call,
     .standard = MALLOC,
     .choices = calls,
     .help = "what allocates; new is C++'s operator, and the operator delete is told the size"},
};

/* Where threads exchange blocks. */
#define SHARED_SLOTS 1024

static const struct lab_sizes *sizes;
static _Atomic uint64_t *shared_slots;
static uint64_t groups; /* of the slots of a lane, for SKEWED */

struct lane {
    struct lab_worker *worker;
    uint64_t *slots;    /* settings.working_set of them; 0: empty */
    uint64_t next_size; /* index into `sizes` */
    uint64_t steps;     /* to be made by the next thread */
};

/* ---- Slots ----------------------------------------------------------------------------------- */

#define ADDRESS_BITS 48

static inline uint64_t slot_word(void *block, uint64_t index)
{
    uint64_t address = (uintptr_t)block;
    if (LAB_UNLIKELY(address >> ADDRESS_BITS)) {
        lab_fail("the address %p is too high for this workload", block);
    }
    return address | index % LAB_SIZE_TABLE << ADDRESS_BITS;
}

/* The place in a lane that a draw leads to, by its upper half. */
static inline uint64_t place_of(uint64_t draw)
{
    if (settings.lives == EVEN) {
        return lab_below(draw, settings.working_set);
    }
    uint64_t scaled = (draw >> 32) * groups;
    uint64_t first = (UINT64_C(1) << (scaled >> 32)) - 1;
    uint64_t rest = settings.working_set - first;
    return first + lab_below(scaled << 32, first + 1 < rest ? first + 1 : rest);
}

/* `call` is a constant of the caller. */
static inline __attribute__((always_inline)) uint64_t allocate(
    struct lab_recorder *recorder, uint64_t index, uint32_t tag, uint64_t call)
{
    size_t size = lab_sizes_at(sizes, index);
    void *block = call == MALLOC   ? lab_malloc(recorder, size)
                  : call == CALLOC ? lab_calloc(recorder, 1, size)
                                   : lab_new(recorder, size);
    if (call == CALLOC) {
        lab_word_expect(block, size, 0, 0);
        lab_word_expect(block, size, size - 4, 0);
    }
    lab_mark_pages(block, size, tag);
    return slot_word(block, index);
}

static inline __attribute__((always_inline)) void release(
    struct lab_recorder *recorder, uint64_t word, uint64_t call)
{
    if (!word) {
        return;
    }
    void *block = (void *)(uintptr_t)(word & ((UINT64_C(1) << ADDRESS_BITS) - 1));
    size_t size = lab_sizes_at(sizes, word >> ADDRESS_BITS);
    lab_verify_pages(recorder, block, size, lab_word_read(block, 0));
    if (call == NEW) {
        lab_delete(recorder, block, size);
    } else {
        lab_free(recorder, block);
    }
}

/* ---- Work ------------------------------------------------------------------------------------ */

/* One thread's time at the lane. */
static inline __attribute__((always_inline)) void serve(struct lane *lane, uint64_t call)
{
    struct lab_recorder *recorder = &lane->worker->recorder;
    struct lab_random random = lane->worker->random;
    uint64_t next_size = lane->next_size;
    for (uint64_t left = lane->steps; left; left--) {
        uint64_t draw = lab_random_next(&random);
        uint64_t *slot = &lane->slots[place_of(draw)];
        release(recorder, *slot, call);
        *slot = allocate(recorder, next_size++, (uint32_t)draw, call);
        if (lab_below(draw << 32, 100) < settings.shared) {
            *slot = atomic_exchange(&shared_slots[draw % SHARED_SLOTS], *slot);
        }
    }
    lane->worker->random = random;
    lane->next_size = next_size;
}

static void serve_malloc(void *lane)
{
    serve(lane, MALLOC);
}

static void serve_calloc(void *lane)
{
    serve(lane, CALLOC);
}

static void serve_new(void *lane)
{
    serve(lane, NEW);
}

static void (*const servers[])(void *lane) = {serve_malloc, serve_calloc, serve_new};

static void work(struct lab_worker *worker)
{
    struct lab_recorder *recorder = &worker->recorder;
    uint64_t count = settings.working_set;
    uint64_t left = lab_share(worker, settings.operations / 2);
    uint64_t first_size = worker->index * 1021; /* the lanes differ in their sizes */
    struct lane lane = {
        .worker = worker,
        .slots = lab_reserve(count * sizeof *lane.slots),
        .next_size = first_size,
    };
    recorder->operations += 2 * left;
    lab_count_draws(recorder, sizes, first_size, left);

    lab_clock_start(worker);
    for (; left > 0; left -= lane.steps) {
        lane.steps = settings.renew && settings.renew < left ? settings.renew : left;
        if (settings.renew) {
            lab_run_apart(servers[settings.call], &lane);
        } else {
            servers[settings.call](&lane);
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        release(recorder, lane.slots[i], settings.call);
    }
    lab_meet(worker);
    for (uint64_t i = worker->index; i < SHARED_SLOTS; i += worker->threads) {
        release(recorder, shared_slots[i], settings.call);
    }
    lab_clock_stop(worker);
    lab_release(lane.slots, count * sizeof *lane.slots);
}

int main(int argc, char **argv)
{
    lab_begin(
        "lifetimes", "Blocks of drawn sizes live for drawn times.", flags, LAB_LENGTH(flags), argc,
        argv);
    if (settings.call == NEW) {
        lab_operators_open();
    }
    struct lab_random random = lab_random_stream(settings.threads);
    sizes = lab_sizes_create(settings.sizes, settings.size_min, settings.size_max, &random);
    shared_slots = lab_reserve(SHARED_SLOTS * sizeof *shared_slots);
    groups = 64 - (uint64_t)__builtin_clzll(settings.working_set);
    lab_run(settings.threads, work);
    return lab_report();
}
