/* Every constant that tunes: a value that was chosen by measurement, and that another machine or
 * program could want otherwise. A constant that follows from a layout, from an interface or from
 * arithmetic is not one, and stays where it is used.
 *
 * Each comment begins with the unit and says what the value decides. The last line names the record
 * in docs/decisions/ and the row of lab/workloads.toml that loses without it, or "none" and why.
 * tests/source/check_tuning.py checks that they exist, and that no other file has such constants.
 */
#ifndef BASE_TUNING_H
#define BASE_TUNING_H

#include "base/macros.h"

/* ---- Borrowing: api/alloc.c, slab/bin.c ------------------------------------------------------ */

/* classes. How many of the next larger classes may lend a block.
 * [2026-11-21-short-magazines; startup] */
#define LENDERS 3

/* loans. A class that has no slab in the shard borrows its first blocks.
 * [2026-11-21-short-magazines; startup] */
#define LOANS_MAX 8

/* batches. After this many a class of large blocks takes one of its own.
 * [2026-11-22-reuse-before-fresh-pages; slots-64k-first] */
#define BORROWED_IN_A_ROW 64

/* ---- What a magazine holds: thread/magazine.c, map/size_class.h ------------------------------ */

/* factor. Of tiny blocks a magazine may hold this many times magazine_kib: their bursts are long,
 * and each call is so short that batches show.
 * [2026-11-22-magazines-for-bursts; bursts-64-5000] */
#define TINY_FACTOR 4

/* threads a CPU. From here on tiny blocks get no more than others; and each time as many threads
 * halve the least number of blocks above a page that a magazine may hold.
 * [2026-11-22-magazines-for-bursts; random-mixed-64-threads] */
#define CROWD_HALVES 8

/* threads a CPU. Pools have this many that all work; each may cache as many blocks up to 32 KiB as
 * an only thread. More have to share.
 * [2026-11-23-pools-of-threads; bursts-64-5000] */
#define CROWD_POOL 4

/* blocks. The fewest that repay a batch; and the most that the bytes below may come to: more would
 * stay with a class when a program goes on with other sizes.
 * [2026-11-22-magazines-for-bursts; bursts-4k-8k-300] */
#define CACHED_BLOCKS_MIN 15
#define CACHED_BLOCKS_MAX 63

/* bytes. What the threads of a CPU share of a class of blocks above 1 KiB for such bursts.
 * [2026-11-22-magazines-for-bursts; bursts-4k-8k-300] */
#define CACHED_MID_BYTES (512 * KIB)

/* bytes. The same of single blocks, which are dear to make, and mostly addresses.
 * [2026-11-22-one-path-to-2-mib; slots-1m-first] */
#define CACHED_SINGLE_BYTES (32 * MIB)

/* ---- Batches: thread/magazine.c, slab/bin.h -------------------------------------------------- */

/* blocks. More at a time is hardly cheaper.
 * [2026-11-21-short-magazines; bursts-64-1000] */
#define BATCH_MAX 128

/* part of a magazine. A batch of a long magazine may be as much: one a little too short for a burst
 * would send much back and forth.
 * [2026-11-22-magazines-for-bursts; bursts-64-5000] */
#define BATCH_PART 4

/* kind of slot range. Where blocks only come or only go, a magazine longer than a batch keeps more
 * from others and saves nothing.
 * [2026-11-22-one-way-magazines; handoff-1-to-4] */
#define ONE_WAY_KIND_MAX 4

/* blocks. What comes from a transfer cache lies in the cache of another processor: the first of a
 * batch are fetched at once.
 * [2026-11-22-prefetch-what-others-freed; handoff-1-to-1] */
#define PREFETCH_MAX 32

/* blocks. Caches are drained by as many at a time, under one lock.
 * [2026-11-21-flush-by-runs; handoff-batches] */
#define FLUSH_MAX 128

/* ---- When threads come by: thread/due.c, heap.c, idle.c -------------------------------------- */

/* pops. After as many a thread takes a slow path and looks at the clock.
 * [2026-11-22-pops-that-are-due; one-block] */
#define POPS_UNTIL_DUE 4096

/* slow calls. After as many a heap looks after its magazines.
 * [2026-11-21-short-magazines; phase-change-64] */
#define MAINTENANCE_PERIOD 256

/* nanoseconds. After this time a closed heap's owner has seen that it is closed.
 * [2026-11-22-idle-threads; none: a bound of correctness, far above what processors need] */
#define SETTLE_NS 1000000

/* heaps, blocks. A step of draining ends after as many.
 * [2026-11-22-idle-threads; none: bounds the time of one call, not the sum] */
#define STEP_HEAPS 64
#define STEP_BLOCKS 2048

/* parks. How often a heap may be parked in a tick of the clock: enough to see a busy thread become
 * one that allocates now and then, and little beside what a busy thread does in a tick.
 * [2026-11-22-idle-threads; random-mixed-2-threads] */
#define PARKS_MAX 256

/* rounds. How long a thread spins at its gate before it sleeps.
 * [2026-11-22-idle-threads; none: the holder copies pointers, for a microsecond] */
#define GATE_SPIN_ROUNDS 100

/* rounds. How long a thread waits for the one that initialises before it looks whether that exists.
 * [2026-11-22-fork-without-locks; none: once a process] */
#define AWAIT_ROUNDS 1000

/* ---- Heaps: thread/registry.c ---------------------------------------------------------------- */

/* heaps. As many in the pool keep their pages.
 * [2026-11-22-pages-of-thread-heaps; churn-threads] */
#define FREE_MAX 16

/* heaps. As many are looked at, at a time, for one that was left behind.
 * [2026-11-22-fork-without-locks; none: bounds the time of one call] */
#define SUSPECTS 8

/* ---- Slabs: slab/slab.c, bin.c, spare.c ------------------------------------------------------ */

/* bytes. Page tables for as much fill what the second-level cache of a core holds: from here on a
 * superslab of short blocks is one huge page.
 * [2026-11-21-huge-pages-for-large-heaps; none: no row has a heap of that size] */
#define HUGE_HEAP_MIN (256 * MIB)

/* longest magazines. The bytes of empty slabs that a bin may keep.
 * [2026-11-21-purge-when-unused; bursts-64-20000] */
#define KEPT_MAGAZINES 32

/* pages. Before pages of a fresh slab are populated, as many of the slab before are looked at, and
 * as many have to be written to.
 * [2026-11-22-populate-growing-classes; phase-change-512] */
#define POPULATE_PLACES 4
#define POPULATE_WRITTEN 3

/* bytes. The longest sampled block of which one may wait for the next sample.
 * [2026-11-22-what-a-sample-costs; none: rows do not sample] */
#define SPARE_BYTES_MAX (64 * KIB)

/* ---- Transfer caches: slab/transfer.c -------------------------------------------------------- */

/* blocks, longest magazines. What the caches of a class hold together, at most. The caches of many
 * shards may each hold the part of it that as many would have.
 * [2026-11-22-caches-by-shard; bursts-64-20000] */
#define TRANSFER_BLOCKS 2048
#define TRANSFER_MAGAZINES 16
#define TRANSFER_PARTS 4

/* factor. More bytes of blocks above 1 KiB, of which few are a long magazine.
 * [2026-11-23-transfer-caches-of-long-blocks; bursts-4k-8k-1000] */
#define TRANSFER_MID_FACTOR 4

/* factor. More bytes of single blocks where a CPU has several threads: each has a part of the
 * magazine that an only one may have, and here they share the rest.
 * [2026-11-23-transfer-caches-of-long-blocks; slots-1m-first] */
#define TRANSFER_SINGLE_FACTOR 32

/* slots. What a cache begins with; it doubles them.
 * [2026-11-22-caches-by-shard; startup] */
#define TRANSFER_SLOTS_MIN 64

/* blocks. As many of a batch tell whether it is all from one shard.
 * [2026-11-23-long-blocks-stay-apart; slots-steps-first] */
#define TRANSFER_LOOKS 3

/* blocks. As many are drained at a time before memory grows.
 * [2026-11-22-reuse-before-fresh-pages; fragment] */
#define TRANSFER_DRAIN_MAX (1 << 14)

/* ---- Sweeps: slab/sweep.c -------------------------------------------------------------------- */

/* slabs. A step looks at as many slabs at a time.
 * [2026-11-21-purge-when-unused; phase-change-512] */
#define SWEEP_SLABS 64

/* runs. No slab has more runs of pages to purge, but while others use it.
 * [2026-11-21-purge-when-unused; none: bounds the time in one slab] */
#define SWEEP_RUNS_MAX 32

/* bytes. Less idle memory of a class is not worth a sweep.
 * [2026-11-21-purge-when-unused; near-idle] */
#define SWEEP_IDLE_MIN (64 * KIB)

/* slabs. As many go back to their lists at a time.
 * [2026-11-21-purge-when-unused; none: bounds how long a lock is held] */
#define SWEPT_SLABS 512

/* ---- Locks: os/lock.c ------------------------------------------------------------------------ */

/* rounds. How often a lock is looked at before the thread sleeps: most are held for a few hundred
 * instructions.
 * [2026-11-22-idle-threads; handoff-4-to-1] */
#define SPIN_ROUNDS 100

/* ---- Page heap: span/page_heap.c ------------------------------------------------------------- */

/* superslabs. How many a search for an aligned run tries before it takes one with a longer run.
 * [2026-11-25-what-earns-its-lines; aligned] */
#define ALIGNED_TRIES 16

/* superslabs. Of how many with free dirty pages the dirtiest is looked for.
 * [2026-11-22-bounded-searches; none: bounds a search] */
#define DIRTY_CANDIDATES 64

/* superslabs. A purge gives up after this many that the system refuses, as it does with locked
 * memory.
 * [2026-11-22-a-room-for-memory-going-back; none: hostile test memory_locked] */
#define REFUSALS_MAX 8

/* purges. How many do not try again what was refused, but those of everything.
 * [2026-11-22-a-room-for-memory-going-back; none: hostile test memory_locked] */
#define REFUSED_ROUNDS 64

/* ---- Big blocks: span/big*.c, span/proof.c --------------------------------------------------- */

/* bytes. With less live in big blocks none gets huge pages: a program may use small parts of each,
 * as sort does of its buffer for a pipe.
 * [2026-11-22-huge-pages-for-what-is-touched; big-blocks] */
#define HUGE_LIVE_MIN (16 * MIB)

/* blocks. How many live ones may be mappings of their own, moved or cut off by the system: a
 * quarter of what a process may have.
 * [2026-11-22-big-blocks-at-any-page; none: hostile test count_of_shortened] */
#define APART_MAX 16384

/* part. A fresh mapping has this part of what is live more, so that blocks are neighbours.
 * [2026-11-22-big-blocks-in-parts; slots-25m-pages] */
#define ROOM_SHARE 4

/* mappings. How many that turn out not to fit a search looks at.
 * [2026-11-22-bounded-searches; none: bounds a search] */
#define FIT_TRIES 16

/* entries of the page map, 2 MiB each. How far below a mapping its neighbour's start is looked for.
 * [2026-11-25-what-earns-its-lines; slots-25m-first] */
#define NEIGHBOUR_UNITS 64

/* steps. Lists of cached mappings a doubling of their length.
 * [2026-11-22-big-blocks-at-any-page; slots-25m-pages] */
#define BIG_LENGTH_STEPS 8

/* pages. At how many places of a block is looked, and how many have to be written to, for it to
 * have been used whole.
 * [2026-11-22-huge-pages-for-what-is-touched; big-blocks] */
#define PROOF_PLACES 16
#define PROOF_DENSE 12

/* ---- Memory that goes back: reclaim/, base/pressure.c ---------------------------------------- */

/* bytes. Free memory that always stays: less is not worth a system call.
 * [2026-11-21-purge-when-unused; phase-change-64] */
#define KEPT_MIN (512 * KIB)

/* part. A call works for this part of the time since the last one that did.
 * [2026-11-22-a-room-for-memory-going-back; near-idle] */
#define PAUSE_SHARE 4

/* milliseconds. But never for longer: the program waits.
 * [2026-11-22-a-room-for-memory-going-back; near-idle] */
#define PURGE_MAX_MS 50

/* pieces. A call ends after this many in a row that gave nothing back.
 * [2026-11-22-a-room-for-memory-going-back; near-idle] */
#define VAIN_MAX 4

/* bytes. A piece purges no more in the page heap.
 * [2026-11-22-a-room-for-memory-going-back; near-idle] */
#define PURGE_STEP (4 * MIB)

/* milliseconds. With limit_mib, a tick reads the limits and what is resident no more often.
 * [2026-11-22-a-room-for-memory-going-back; none: no row has a limit] */
#define MEASURE_MS 1000

/* part. Of a limit, this is left for what is not counted; where less than twice that is left, long
 * blocks are not cached.
 * [2026-11-22-a-room-for-memory-going-back; none: hostile tests below_a_limit] */
#define NEAR_PART 16

#endif
