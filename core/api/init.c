/* The library's constructor and destructor.
 *
 * Allocation does not wait for either: the first call, which may come earlier, from the dynamic
 * linker or another library's constructor, runs with the default policy (thread/heap.c).
 */
#include "api/init.h"

#include "api/alloc.h"
#include "api/environment.h"
#include "api/fallback.h"
#include "api/options.h"
#include "base/policy.h"
#include "hardened.h"
#include "os/os.h"
#include "os/symbol.h"
#include "os/thread.h"
#include "report/descriptor.h"
#include "report/report.h"
#include "slab/bin.h"
#include "slab/transfer.h"
#include "thread/fork.h"
#include "thread/registry.h"
#include "trace/trace.h"

static void start_fallback(void)
{
    static const char message[] = "hakmem: option fallback: a static program has no other malloc\n";
    static const char hardened[] = "hakmem: option fallback: the hardened library has none\n";
    if (HARDENED || !fallback_init()) {
        os_write(
            STDERR, HARDENED ? hardened : message,
            (HARDENED ? sizeof hardened : sizeof message) - 1);
        return;
    }
    ATOMIC_STORE_RELEASE(&policy.fallback, 1);
    heap_forget();
}

/* Makes the linker keep the descriptor, which only outside observers read. */
static void keep_descriptor(void)
{
    __asm__ volatile("" : : "r"(&descriptor));
}

void init_heap(void)
{
    registry_read_options();
    if (trace_now())
        trace_now()->start();
}

/* Before the constructor of override/libc.c. */
__attribute__((constructor(65533))) static void library_start(void)
{
    keep_descriptor();
    os_start();
    os_find_clock();
    symbol_stay_loaded();
    heap_end_early();
    environment_read();
    if (environment_wants_stats() || POLICY(dump_signal))
        report_start();
    else if (environment_file(RECORD_FILE))
        report_look();
    if (trace_open)
        ATOMIC_STORE_RELEASE(&trace, trace_open());
    if (options_fallback_wanted())
        start_fallback();
    fork_init();
    os_thread_begin_process();
    init_heap();
    if (POLICY(background))
        os_thread_begin_program();
    report_start_dumps();
}

/* The last check: finds wrongly freed blocks that are still cached. */
static void flush_at_exit(void)
{
    struct heap *heap = heap_of_thread();
    if (!heap || heap->depth)
        return;
    /* Straight to the slabs: else blocks would touch fresh pages of the transfer caches. */
    transfer_close();
    hardened_stop();
    /* Other threads may still work, and drain the heap. */
    heap_enter();
    heap_flush(heap, SIZE_MAX);
    heap_leave(heap);
    registry_flush_pool();
    transfer_drain(SIZE_MAX);
}

__attribute__((destructor)) static void library_stop(void)
{
    report_at_exit();
    if (trace_now())
        trace_now()->stop();
    flush_at_exit();
}
