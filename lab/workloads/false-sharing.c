/* false-sharing: threads write into small blocks of their own.
 *
 * Where the allocator puts blocks of two threads into one cache line, the threads slow each other
 * down with every write, although they share nothing. Each thread, over and over, allocates a few
 * blocks, counts up in each of them many times, and frees them.
 *
 *     active:  The threads begin with nothing. An allocator that cuts a cache line up between two
 *              threads makes them share it.
 *     passive: One thread first allocates blocks next to each other and deals them out; the others
 *              begin by freeing theirs. An allocator that gives these very blocks to the thread
 *              that freed them makes the threads share what one thread had cut up. It lasts, as
 *              the blocks go round in the same thread.
 *
 * The figure shared_blocks_percent says how many of the last blocks begin in a line in which a
 * block of another thread begins; the time says what that costs. After Berger and others, "Hoard: A
 * Scalable Memory Allocator for Multithreaded Applications" (2000).
 *
 * Thread rule: a worker's blocks belong to its thread. The first worker writes the table of all
 * when it deals, and reads it for the report; the others wait meanwhile. */
#include "lab.h"

enum mode { MODE_ACTIVE, MODE_PASSIVE };

static const char *const modes[] = {"active", "passive", NULL};

static struct {
    uint64_t mode, operations, threads, writes, size;
} settings;

static const struct lab_flag flags[] = {
    {.name = "mode",
     .kind = LAB_CHOICE,
     .variable = &settings.mode,
     .standard = MODE_ACTIVE,
     .choices = modes,
     .help = "who allocated the first blocks: each thread its own, or one for all"},
    LAB_OPERATIONS(&settings.operations, 4000000),
    LAB_THREADS(&settings.threads, 2),
    {.name = "writes",
     .kind = LAB_COUNT,
     .variable = &settings.writes,
     .standard = 100,
     .least = 1,
     .most = 1000000,
     .unit = "writes",
     .help = "writes into a block before it is freed"},
    {.name = "size",
     .kind = LAB_BYTES,
     .variable = &settings.size,
     .standard = 8,
     .least = LAB_SIZE_LEAST,
     .most = LAB_SIZE_MOST,
     .help = "size of every block"},
};

/* Blocks that a thread has at a time. */
#define HAND 8

#define CACHE_LINE 64

/* What a worker holds; no cache line with the neighbour's. */
struct hand {
    _Alignas(128) void *blocks[HAND];
};

static struct hand *hands; /* by worker */

/* What is in a block of the worker; the same for all its rounds. */
static uint32_t tag_of(uint64_t worker, uint64_t number)
{
    return (uint32_t)lab_mix((lab_seed() << 32) + worker * HAND + number);
}

static void take(struct lab_recorder *recorder, uint64_t worker, uint64_t number)
{
    void *block = lab_malloc(recorder, settings.size);
    lab_mark(block, settings.size, tag_of(worker, number));
    hands[worker].blocks[number] = block;
}

static void take_hand(struct lab_worker *worker)
{
    for (uint64_t i = 0; i < HAND; i++) {
        take(&worker->recorder, worker->index, i);
    }
}

/* Frees the worker's blocks, in each of which the first word was counted up `writes` times. */
static void free_hand(struct lab_worker *worker, uint64_t writes)
{
    struct lab_recorder *recorder = &worker->recorder;
    for (uint64_t i = 0; i < HAND; i++) {
        void *block = hands[worker->index].blocks[i];
        uint32_t tag = tag_of(worker->index, i);
        size_t last = settings.size - 4;
        uint64_t counted = lab_word_expect(block, settings.size, 0, tag + (uint32_t)writes);
        recorder->checksum +=
            counted << 32 | lab_word_expect(block, settings.size, last, tag ^ settings.size);
        lab_free(recorder, block);
    }
}

/* Counts up in each block. The compiler must not merge the writes, hence volatile. */
static void count_up(const struct hand *hand)
{
    volatile uint32_t *words[HAND];
    for (uint64_t i = 0; i < HAND; i++) {
        words[i] = hand->blocks[i];
    }
    for (uint64_t left = settings.writes; left; left--) {
        for (uint64_t i = 0; i < HAND; i++) {
            *words[i] += 1;
        }
    }
}

/* The passive beginning: the first worker allocates for all, turn by turn. */
static void deal(struct lab_worker *worker)
{
    if (worker->index == 0) {
        for (uint64_t i = 0; i < HAND; i++) {
            for (uint64_t to = 0; to < worker->threads; to++) {
                take(&worker->recorder, to, i);
            }
        }
    }
    lab_meet(worker);
    free_hand(worker, 0);
}

static bool in_one_line(const void *left, const void *right)
{
    return (uintptr_t)left / CACHE_LINE == (uintptr_t)right / CACHE_LINE;
}

static bool is_shared(uint64_t owner, const void *block)
{
    for (uint64_t other = 0; other < settings.threads; other++) {
        for (uint64_t i = 0; other != owner && i < HAND; i++) {
            if (in_one_line(block, hands[other].blocks[i])) {
                return true;
            }
        }
    }
    return false;
}

/* Lets every worker take blocks once more, and looks at where they are. The clock stands still
 * meanwhile, and the workers wait. */
static void report_shared(struct lab_worker *worker)
{
    lab_clock_start(worker);
    take_hand(worker);
    lab_clock_stop(worker);
    if (worker->index == 0) {
        uint64_t shared = 0;
        for (uint64_t owner = 0; owner < worker->threads; owner++) {
            for (uint64_t i = 0; i < HAND; i++) {
                shared += is_shared(owner, hands[owner].blocks[i]);
            }
        }
        lab_figure(
            100 * (double)shared / (double)(worker->threads * HAND), "shared_blocks_percent");
    }
    lab_clock_start(worker);
    free_hand(worker, 0);
    lab_clock_stop(worker);
}

static void work(struct lab_worker *worker)
{
    uint64_t rounds = lab_share(worker, settings.operations) / (2 * HAND);
    bool passive = settings.mode == MODE_PASSIVE;

    lab_clock_start(worker);
    if (passive) {
        deal(worker);
    }
    for (uint64_t round = 0; round < rounds; round++) {
        take_hand(worker);
        count_up(&hands[worker->index]);
        free_hand(worker, settings.writes);
    }
    lab_clock_stop(worker);
    report_shared(worker);

    uint64_t hands_taken = rounds + passive + 1;
    worker->recorder.operations += 2 * HAND * hands_taken;
    lab_count_size(&worker->recorder, settings.size, HAND * hands_taken);
}

int main(int argc, char **argv)
{
    lab_begin(
        "false-sharing", "Threads write into small blocks that may share cache lines.", flags,
        LAB_LENGTH(flags), argc, argv);
    hands = lab_reserve(settings.threads * sizeof *hands);
    lab_run(settings.threads, work);
    return lab_report();
}
