/* Every constant that tunes: a value that was chosen by measurement, and that another machine or
 * program may need to be different. A constant that follows from a layout, an interface or
 * arithmetic does not tune, and stays where it is used.
 *
 * Each comment names the unit first, and then the effect of the value. The last line names the
 * decision, by record and heading in docs/decisions/, and the row of lab/workloads.toml that loses
 * without it, or "none" and why. tests/source/check_tuning.py checks that they exist, and that no
 * other file has such constants.
 */
#ifndef BASE_TUNING_H
#define BASE_TUNING_H

#include "base/macros.h"

/* ---- Borrowing: api/alloc.c, slab/bin.c ------------------------------------------------------ */

/* classes. How many of the next larger classes may lend a block.
 * [slab#where-a-block-comes-from; startup] */
#define LENDERS 3

/* loans. How many blocks a class without a slab in the shard borrows first.
 * [slab#where-a-block-comes-from; startup] */
#define LOANS_MAX 8

/* batches. After this many a class of large blocks takes one of its own.
 * [slab#where-a-block-comes-from; slots-64k-first] */
#define BORROWED_IN_A_ROW 64

/* ---- Shrinking: api/resize.c ----------------------------------------------------------------- */

/* part. A block stays where it is if a new one would save less: more than this would undo the room
 * that growth by little gets.
 * [api#shrinking-blocks-move; small-vectors] */
#define SHRINK_PART 5

/* times. After a move in vain, so many blocks are not moved for each one that was until then. A
 * copy costs up to a hundred times what staying costs.
 * [api#shrinking-blocks-move; none: hostile test shrunk_to_and_fro] */
#define SHRINKS_SPARED 128

/* moves. How many others move before the next block is watched; and the most after which a freed
 * one had saved nothing worth a copy.
 * [api#shrinking-blocks-move; none: unit test api_alloc] */
#define SHRINKS_WATCHED 4096
#define SHRINKS_BRIEF 16

/* ---- The length of magazines: thread/magazine.c, map/size_class.h ---------------------------- */

/* factor. A magazine of tiny blocks may hold this many times magazine_kib: their bursts are long,
 * and their calls so short that batches show.
 * [thread#how-long-magazines-are; bursts-64-5000] */
#define TINY_FACTOR 4

/* part. So much of its capacity stays in a magazine that is flushed twice in a row, else a half.
 * [thread#how-long-magazines-are; bursts-64-5000] */
#define FLUSHED_PART 4

/* threads a CPU. From here on, TINY_FACTOR does not count.
 * [thread#how-long-magazines-are; random-mixed-64-threads] */
#define CROWD_MANY 8

/* threads a CPU. Pools have this many busy threads: each may cache as many tiny blocks as a
 * single thread. More threads have to share, and their first batches begin with one block.
 * [thread#how-long-magazines-are; bursts-64-5000] */
#define CROWD_POOL 4

/* blocks. The fewest tiny ones that repay a batch; and the most of a class above 1 KiB: more would
 * stay with it when the program goes on with other sizes.
 * [thread#how-long-magazines-are; bursts-4k-8k-300] */
#define CACHED_BLOCKS_MIN 15
#define CACHED_BLOCKS_MAX 63

/* percent, longest magazines. Of blocks above 1 KiB, all classes together, magazines may hold so
 * much of the memory in use, where blocks come and go; those of the threads of a CPU at least so
 * many times magazine_kib. Not all of it: what they cannot hold is what lets it go back.
 * [thread#how-long-magazines-are; slots-1m-first] */
#define CACHED_PERCENT 75
#define CACHED_MAGAZINES 64

/* ---- Batches: thread/magazine.c, slab/bin.h -------------------------------------------------- */

/* blocks. Larger batches are hardly cheaper.
 * [thread#how-long-magazines-are; bursts-64-1000] */
#define BATCH_MAX 128

/* part of a magazine. The longest batch of a long magazine: with longer ones, a magazine a little
 * too short for a burst would send much back and forth.
 * [thread#how-long-magazines-are; bursts-64-5000] */
#define BATCH_PART 4

/* kind of slot range. Where blocks only come or only go, a magazine longer than a batch keeps more
 * from others and saves nothing.
 * [thread#how-long-magazines-are; handoff-1-to-4] */
#define ONE_WAY_KIND_MAX 4

/* blocks. Blocks from a transfer cache lie in the cache of another processor: the first of a batch
 * are fetched at once.
 * [slab#batches-and-the-bitmap; handoff-1-to-1] */
#define PREFETCH_MAX 32

/* blocks. How many a flush moves at a time; a drain of transfer caches half of it.
 * [slab#batches-and-the-bitmap; handoff-batches] */
#define FLUSH_MAX 128

/* ---- When threads come by: thread/magazine.c, heap.c, idle.c --------------------------------- */

/* pops. After this many, a thread takes a slow path and looks at the clock.
 * [thread#when-a-thread-takes-a-slow-path; one-block] */
#define POPS_UNTIL_DUE 4096

/* slow calls. After this many, a heap adjusts its magazines.
 * [thread#how-long-magazines-are; phase-change-64] */
#define MAINTENANCE_PERIOD 256

/* nanoseconds. By then, the owner of a closed heap has seen that it is closed.
 * [thread#idle-threads; none: a bound of correctness, far above what processors need] */
#define SETTLE_NS 1000000

/* milliseconds. For so long after a purge that waited for heaps and got nothing from them, others
 * do not wait: a program that asks for too much again and again would wait each time. What threads
 * cache meanwhile is not reached.
 * [thread#how-long-magazines-are; none: hostile test left_waiting] */
#define VAIN_MS 10

/* heaps, blocks. A step of draining ends after this many, also within a heap, which goes on in the
 * next round; a batch counts as BATCH_COST at least.
 * [reclaim#one-hand; none: unit test reclaim_engine] */
#define STEP_HEAPS 16
#define STEP_BLOCKS 512
#define BATCH_COST 4

/* parks. How often a heap may be parked in a tick of the clock: enough to see a busy thread become
 * one that allocates now and then, and little beside what a busy thread does in a tick.
 * [thread#when-a-thread-takes-a-slow-path; random-mixed-2-threads] */
#define PARKS_MAX 256

/* rounds. How long a thread spins at its gate before it sleeps.
 * [thread#idle-threads; none: the holder copies pointers, for a microsecond] */
#define GATE_SPIN_ROUNDS 100

/* rounds. How long a thread waits for the one that initialises before it checks that that exists.
 * [process#fork-takes-no-lock; none: once a process] */
#define AWAIT_ROUNDS 1000

/* ---- Searches for double frees: thread/magazine.c -------------------------------------------- */

/* blocks, debts. A vain search costs a debt for each BLOCKS_PER_DEBT blocks; none is made while a
 * class has more than DEBT_MAX debts. Each overflow and each maintenance pays one off.
 * [api#short-blocks-carry-a-mark; none: programs that free unwritten blocks] */
#define BLOCKS_PER_DEBT 128
#define DEBT_MAX 64

/* ---- Heaps: thread/heap.c, registry.c -------------------------------------------------------- */

/* heaps. How many in the pool keep their pages.
 * [thread#heaps; churn-threads] */
#define EMPTY_HEAPS_MAX 16

/* looks. How often the hand comes by a heap in the pool, with its blocks, before these go.
 * [thread#heaps; churn-threads] */
#define WARM_TICKS 2

/* part. Areas are mapped for this part of the heaps at once, and lie unused until then.
 * [thread#heaps; none: hostile test threads_many] */
#define AREAS_PART 32

/* heaps. How many are checked at a time for one that its thread has left.
 * [process#fork-takes-no-lock; none: bounds the time of one call] */
#define SUSPECTS 8

/* calls. After so many that borrowed a heap, a thread that is ending keeps one.
 * [thread#heaps; none: hostile test destructors_rounds] */
#define BORROWS_MAX 8

/* ---- Slabs: slab/slab.c, bin.c; trace/spare.c ------------------------------------------------ */

/* longest magazines. The bytes of empty slabs that a bin may keep.
 * [slab#how-much-stays; bursts-64-20000] */
#define KEPT_MAGAZINES 32

/* pages. Before pages of a fresh slab are populated, how many pages of the slab before are checked,
 * and how many of them have to be written to.
 * [slab#growing-classes-are-populated; phase-change-512] */
#define POPULATE_PLACES 4
#define POPULATE_WRITTEN 3

/* bytes. The longest sampled block of which one may wait for the next sample.
 * [trace#samples; none: rows do not sample] */
#define SPARE_BYTES_MAX (64 * KIB)

/* ---- Transfer caches: slab/transfer.c -------------------------------------------------------- */

/* blocks, longest magazines. The most that the caches of a class hold together. With more shards
 * than TRANSFER_PARTS, each may still hold this part of it.
 * [slab#how-much-stays; bursts-64-20000] */
#define TRANSFER_BLOCKS 2048
#define TRANSFER_MAGAZINES 16
#define TRANSFER_PARTS 4

/* factor. How many times the bytes for blocks above 1 KiB, few of which fill a magazine.
 * [slab#how-much-stays; bursts-4k-8k-1000] */
#define TRANSFER_MID_FACTOR 4

/* part. A class of single blocks may have this part of the memory in use, if that is more.
 * [slab#how-much-stays; slots-1m-first] */
#define TRANSFER_SINGLE_PART 16

/* blocks. If more tiny ones came since a cache was asked for some, they go to the bins.
 * [slab#where-a-block-goes; traverse-list] */
#define TRANSFER_FREED_MAX 4096

/* slots. The first length of a cache, which doubles.
 * [slab#how-much-stays; startup] */
#define TRANSFER_SLOTS_MIN 64

/* blocks. How many are drained at a time before memory grows.
 * [slab#where-a-block-comes-from; fragment] */
#define TRANSFER_DRAIN_MAX (1 << 12)

/* ---- Sweeps: slab/sweep.c -------------------------------------------------------------------- */

/* slabs. How many a step looks at, at a time.
 * [reclaim#when-it-lay-unused; phase-change-512] */
#define SWEEP_SLABS 8

/* runs. A slab has more runs of pages to purge only if other threads use it meanwhile.
 * [reclaim#when-it-lay-unused; none: bounds the time in one slab] */
#define SWEEP_RUNS_MAX 32

/* bytes. Less idle memory of a class is not worth a sweep.
 * [reclaim#when-it-lay-unused; near-idle] */
#define SWEEP_IDLE_MIN (64 * KIB)

/* slabs. How many go back to their lists at a time.
 * [reclaim#when-it-lay-unused; none: bounds how long a lock is held] */
#define SWEPT_SLABS 256

/* ---- Locks: os/lock.c ------------------------------------------------------------------------ */

/* rounds. How often a lock is looked at before the thread sleeps: most are held for a few hundred
 * instructions.
 * [thread#idle-threads; handoff-4-to-1] */
#define SPIN_ROUNDS 100

/* ---- Page heap: span/page_heap.c ------------------------------------------------------------- */

/* superslabs. Among how many a search looks for the run with most dirty pages; one for an aligned
 * run tries as many of each length before it takes one with a longer run.
 * [span#superslabs; aligned] */
#define RUN_TRIES 16

/* superslabs. Among how many with free dirty pages a search looks for the dirtiest.
 * [span#superslabs; none: bounds a search] */
#define DIRTY_CANDIDATES 64

/* superslabs. A purge gives up after this many that the system refuses, as it does with locked
 * memory.
 * [reclaim#limits; none: hostile test memory_locked] */
#define REFUSALS_MAX 8

/* purges. How many skip superslabs that the system refused; purges of everything skip none.
 * [reclaim#limits; none: hostile test memory_locked] */
#define REFUSED_ROUNDS 64

/* ---- Big blocks: span/big*.c, span/huge.c ---------------------------------------------------- */

/* bytes. With fewer live in big blocks, none gets huge pages: a program may use small parts of
 * each, as sort does with its buffer for a pipe.
 * [huge_pages#by-the-systems-word; big-blocks] */
#define HUGE_LIVE_MIN (16 * MIB)

/* bytes. From here on a big block has what the system gives unasked: stacks, rings and buffers that
 * are hardly used are mostly shorter.
 * [huge_pages#by-the-systems-word; none: rows run where nothing is given unasked] */
#define HUGE_ALONE_MIN (16 * MIB)

/* blocks. How many live ones may be mappings of their own, moved or cut off by the system: a
 * quarter of the mappings that a process may have.
 * [span#big-blocks; none: hostile test count_of_shortened] */
#define OWN_MAPPINGS_MAX 16384

/* mappings. After how many that do not fit a search ends.
 * [span#the-bigcache; none: bounds a search] */
#define FIT_TRIES 16

/* part. A cached mapping of at least this part of a request is made longer for it.
 * [span#the-bigcache; big-blocks] */
#define LENGTHENED_PART 4

/* part. What blocks took since the last tick is cached to this part, since it may be taken again.
 * [span#what-was-taken-lately; big-blocks] */
#define LATELY_PART 4

/* part. A block that grows by less gets so much more, in the hope that it goes on growing; one that
 * shrinks by less stays as it is.
 * [api#growth-by-little-gets-room; realloc-grow] */
#define HEADROOM_PART 8

/* steps. How many lists of cached mappings there are a doubling of their length.
 * [span#big-blocks; slots-25m-pages] */
#define BIG_LENGTH_STEPS 8

/* pages. How many places of a freed block may be looked at when it is used again. If USE_DENSE were
 * written to, it counts as used whole, if fewer than USE_SPARSE as hardly used, and trust falls to
 * a part: for huge pages. [huge_pages#what-was-touched-is-cleared; big-blocks] */
#define USE_PLACES 64
#define USE_DENSE 48
#define USE_SPARSE 16
#define DISTRUST_PART 4

/* bytes. calloc clears fresh blocks of up to two pages, too: a program that looks at a fresh page
 * gets the system's page of zeros, and then pays for its first write once more.
 * [api#calloc-clears-short-blocks-whole; none: drawn rows of calloc with threads] */
#define CLEARED_WHOLE (8 * KIB)

/* pages, bytes. If so many places were written to, calloc sweeps the memory: it looks at all pages,
 * and clears those that are not zero. A fault costs as much as clearing 25 pages that have memory,
 * or 10 of memory above SWEEP_LONG, which no processor's cache holds.
 * [huge_pages#what-was-touched-is-cleared; calloc-sparse] */
#define SWEEP_TOUCHED 3
#define SWEEP_LONG_TOUCHED 8
#define SWEEP_LONG (16 * MIB)

/* part, times. Swept memory is swept again, until less than this part was written to so many times:
 * where it was never touched, a sweep costs a fault a page, once.
 * [huge_pages#what-was-touched-is-cleared; calloc-sparse] */
#define SWEPT_PART 256
#define SWEEPS 3

/* ---- Memory that goes back: reclaim/, base/pressure.c ---------------------------------------- */

/* bytes. Free memory that always stays: less is not worth a system call.
 * [reclaim#when-it-lay-unused; phase-change-64] */
#define KEPT_MIN (256 * KIB)

/* parts. Memory that lies free counts as not needed when a GROWN_PART of it was mapped anew; all of
 * what is mapped at once goes for it, unless only an AT_ONCE_PART lies free. Beside that a
 * STAYING_PART of the memory in use stays.
 * [reclaim#growth-is-paid-for; phase-change-64] */
#define GROWN_PART 16
#define AT_ONCE_PART 4
#define STAYING_PART 16

/* bytes a millisecond, bytes. At most as much free memory goes for memory that is taken: some
 * percent of the time, if all of it is wanted again at once. PAID_MOST is what may go at once after
 * a time when nothing had to.
 * [reclaim#growth-is-paid-for; medium-blocks] */
#define PAID_A_MS (128 * KIB)
#define PAID_MOST (4 * MIB)

/* times, parts, nanoseconds, milliseconds. Work is followed by WORK_PART times as much rest. A call
 * works no longer than a PAUSE_PART of the time since the last slow path of any thread: WORK_MIN at
 * least, WORK_SHORT at most, or WORK_LONG after a LONG_PAUSE, when the program hardly calls malloc.
 * Steps take a STEP_PART of the time left, and STEP at least. [reclaim#one-hand; near-idle] */
#define WORK_PART 4
#define PAUSE_PART 40
#define WORK_MIN_NS 20000
#define WORK_SHORT_NS 1000000
#define WORK_LONG_NS 5000000
#define LONG_PAUSE_MS 150
#define STEP_NS 8000
#define STEP_PART 4

/* places. A step passes so many that have nothing.
 * [reclaim#one-hand; none: bounds a step] */
#define LOOKS_MAX 64

/* steps. What a place has to give after so many has to wait for the next round: threads that use it
 * may give it as much meanwhile.
 * [reclaim#one-hand; none: bounds a round] */
#define STEPS_MAX 4096

/* milliseconds. The helper waits for half of the time until a round, but at least and at most so
 * long: the program may set another delay meanwhile.
 * [reclaim#a-helper-on-request; none: behaviour test helper] */
#define HELPER_WAIT_MS 20
#define HELPER_WAIT_MOST_MS 1000

/* bytes. A step purges about as much: a call may be one step longer.
 * [reclaim#one-hand; none: unit test reclaim_engine] */
#define PURGE_STEP (64 * KIB)

/* bytes. A call of the system for a few pages counts as so many in a step.
 * [reclaim#one-hand; none: unit test reclaim_engine] */
#define PURGE_CALL (16 * KIB)

/* milliseconds. With limit_mib, a tick reads the limits and what is resident no more often.
 * [reclaim#limits; none: no row has a limit] */
#define MEASURE_MS 1000

/* part. This part of a limit is left for uncounted memory; if less than twice as much is left, long
 * blocks are not cached.
 * [reclaim#limits; none: hostile tests below_a_limit] */
#define NEAR_PART 16

/* ---- Scopes: scope/ -------------------------------------------------------------------------- */

/* allocations. So many in a scope that a thread has entered pay for a cache of its own there.
 * [scope#a-cache-for-a-thread-that-stays; none: test scope_stay] */
#define SCOPE_PAYS 64

/* blocks of a class. So many a cache holds, and half as many come or go under one lock.
 * [scope#a-cache-for-a-thread-that-stays; none: test scope_stay] */
#define SCOPE_CACHED 32

/* spans. From so many on, a scope asks for huge pages where its small blocks lie: they go back ten
 * times faster, and a scope that is smaller shall cost the pages that it touches.
 * [scope#huge-pages-for-a-scope-that-has-grown; none: test scope_phase] */
#define SCOPE_SMALL_SPANS 8

/* records. So many scopes end before the record of one serves again: until then a stale pointer to
 * it leads to a message.
 * [scope#what-is-known-of-the-dead; none: misuse tests of scopes] */
#define SCOPE_RECORDS_KEPT 256

/* spans. So many of a destroyed scope keep their addresses until its record serves again.
 * [scope#what-is-known-of-the-dead; none: misuse tests of scopes] */
#define SCOPE_SPANS_KEPT 8

#endif
