/* See trial.h. */
#include "trial.h"

#include <malloc.h>
#include <stdio.h>

#include <hakmem/hakmem.h>

#include "checks/checks.h"
#include "checks/walk.h"
#include "hardened.h"
#include "runtime_support.h"
#include "slab/bin.h"
#include "span/big_cache.h"
#include "span/page_heap.h"
#include "thread/heap.h"

/* A busy machine may take long, but a trial needs a second or two of a processor. */
enum { CPU_SECONDS_MAX = 60, SECONDS_MAX = 1200, SURVIVORS = 64, AGAIN = 24 };

static struct blocks blocks;

/* Where the process was before its first malloc. */
static uint64_t first_address_space_kib;

static struct footprint footprint_now(void)
{
    struct hakmem_stats stats;
    struct footprint now = {0};
    hakmem_get_stats(&stats, sizeof stats);
    now.live_blocks = stats.live_blocks;
    now.live_bytes = stats.live_bytes;
    now.mapped_bytes = stats.mapped_bytes;
    now.committed_bytes = stats.committed_bytes;
    now.retained_bytes = stats.retained_bytes;
    now.metadata_bytes = stats.metadata_bytes;
    uint64_t grown = ((uint64_t)mapped_kib() - first_address_space_kib) * KIB;
    uint64_t explained = stats.mapped_bytes + stats.metadata_bytes;
    /* Where a refusal led to addresses far from the others. */
    explained += wide_class_map.classes ? wide_class_map.limit : 0;
    now.unaccounted_bytes = grown > explained ? grown - explained : 0;
    now.resident_bytes = (uint64_t)resident_kib() * KIB;
    return now;
}

static void check_structures(void)
{
    walk_shared();
    bin_check_all();
    big_cache_check();
    if (heap_of_thread())
        heap_check(heap_of_thread());
}

/* Every tier serves again. */
static void allocate_again(void)
{
    static struct blocks again;
    again.seed = 77;
    for (unsigned slot = 0; slot < AGAIN; slot++)
        REQUIRE(block_alloc(&again, slot, blocks_size(&again, 8, 4 * MIB)));
    for (unsigned slot = 0; slot < AGAIN; slot++)
        REQUIRE(block_resize(&again, slot, blocks_size(&again, 8, 4 * MIB)));
    blocks_free_all(&again, 0);
}

static bool no_more(const char *what, uint64_t is, uint64_t expected, uint64_t tolerance)
{
    char line[160];
    if (is <= expected + tolerance)
        return true;
    snprintf(
        line, sizeof line, "%s: %llu, without faults %llu\n", what, (unsigned long long)is,
        (unsigned long long)expected);
    say(line);
    return false;
}

/* Other blocks are live than without faults, and they leave other gaps. */
static bool partly_as_expected(const struct footprint *is, const struct footprint *expected)
{
    uint64_t unused = expected->resident_bytes - expected->live_bytes;
    return no_more(
        "resident with some blocks live", is->resident_bytes, unused + is->live_bytes, 3 * MIB);
}

static bool finally_as_expected(const struct footprint *is, const struct footprint *expected)
{
    bool ok = no_more("live blocks", is->live_blocks, expected->live_blocks, 0);
    ok &= no_more("mapped", is->mapped_bytes, expected->mapped_bytes, 0);
    ok &= no_more("committed", is->committed_bytes, expected->committed_bytes, 0);
    ok &= no_more("retained", is->retained_bytes, expected->retained_bytes, 0);
    /* Where superslabs lie at random places, each leaves a leaf of the page map. */
    uint64_t leaves = HARDENED ? 32 * sizeof(struct leaf) : 0;
    ok &= no_more("metadata", is->metadata_bytes, expected->metadata_bytes, MIB + leaves);
    ok &= no_more(
        "address space that nobody knows of", is->unaccounted_bytes, expected->unaccounted_bytes,
        256 * KIB);
    ok &= no_more("resident", is->resident_bytes, expected->resident_bytes, MIB + leaves);
    return ok;
}

/* What waits in the hardened library, too: some of it was closed while the system refused to take
 * its memory. */
static void give_all_back(void)
{
    hakmem_purge();
    if (HARDENED)
        hardened_release();
    hakmem_purge();
}

/* The child's part. */
static void make_trial(
    const struct workload *workload, const struct schedule *schedule,
    const struct trial_result *expected, struct trial_result *result)
{
    watchdog(SECONDS_MAX, workload->name);
    first_address_space_kib = (uint64_t)mapped_kib();
    blocks.seed = 12345;
    schedule_start(schedule);
    workload->run(&blocks);
    schedule_stop();
    check_structures();
    blocks_check_all(&blocks);
    allocate_again();
    blocks_free_all(&blocks, BLOCKS_MAX / SURVIVORS);
    give_all_back();
    result->partly = footprint_now();
    blocks_free_all(&blocks, 0);
    give_all_back();
    check_structures();
    result->finally = footprint_now();
    result->failures = schedule_failures();
    result->refused = blocks.refused;
    result->ok = !expected || (partly_as_expected(&result->partly, &expected->partly) &
                               finally_as_expected(&result->finally, &expected->finally));
}

void trial_run(
    const struct workload *workload, const struct schedule *schedule,
    const struct trial_result *expected, struct trial_result *result)
{
    static struct trial_result *shared;
    int status = 0;
    if (!shared)
        shared =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    memset(shared, 0, sizeof *shared);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const struct rlimit cpu = {CPU_SECONDS_MAX, CPU_SECONDS_MAX};
        setrlimit(RLIMIT_CORE, &no_core);
        setrlimit(RLIMIT_CPU, &cpu);
        make_trial(workload, schedule, expected, shared);
        _exit(0);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    *result = *shared;
    if (status == 0)
        return;
    result->ok = false;
    char line[80];
    snprintf(
        line, sizeof line, "%s %d\n", WIFSIGNALED(status) ? "ended by signal" : "exit status",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    say(line);
}
