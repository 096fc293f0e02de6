/* What the stress says: failures with all that is needed to run them again, and the results.
 *
 * Failures are formatted into a buffer on the stack and written at once, for the allocator is not
 * to be trusted then. Thread rule: failures may come from any thread, the rest is for main. */
#include "stress.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 2048 };

const char *const tier_names[TIERS] = {"tiny", "mid", "large", "big"};

/* Written by the main thread while no other runs, read by a signal handler or a failing thread. */
static const struct run *_Atomic running;
static _Thread_local const struct seat *sitting;
static atomic_flag reported = ATOMIC_FLAG_INIT;

struct message {
    size_t length;
    char text[MESSAGE_BYTES];
};

static void append_list(struct message *message, const char *format, va_list list)
{
    size_t room = sizeof(message->text) - message->length;
    int length = vsnprintf(message->text + message->length, room, format, list);

    if (length > 0)
        message->length += (size_t)length < room ? (size_t)length : room - 1;
}

static void append(struct message *message, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(struct message *message, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    append_list(message, format, list);
    va_end(list);
}

static void send(const struct message *message)
{
    size_t sent = 0;

    while (sent < message->length) {
        ssize_t count = write(STDERR_FILENO, message->text + sent, message->length - sent);

        if (count <= 0)
            return;
        sent += (size_t)count;
    }
}

static void append_replay(struct message *message, const struct run *run)
{
    append(
        message,
        "  again: stress --first-seed %llu --seeds 1 --threads %u --operations %llu"
        " --max-live-bytes %llu --purge-every %llu\n",
        (unsigned long long)run->seed, run->threads, (unsigned long long)run->operations,
        (unsigned long long)run->options->live_bytes_max,
        (unsigned long long)run->options->purge_every);
}

void report_now_running(const struct run *run)
{
    atomic_store(&running, run);
}

void report_sits_here(const struct seat *seat)
{
    sitting = seat;
}

static void on_signal(int number)
{
    const struct run *run = atomic_load(&running);
    struct message message = {0};

    signal(number, SIG_DFL);
    if (!atomic_flag_test_and_set(&reported)) {
        append(&message, "stress: signal %d (%s)", number, strsignal(number));
        if (sitting != NULL)
            append(
                &message, " in seed %llu, threads %u, thread %u, operation %llu",
                (unsigned long long)sitting->run->seed, sitting->run->threads, sitting->index,
                (unsigned long long)sitting->operation);
        append(&message, "\n");
        if (run != NULL)
            append_replay(&message, run);
        send(&message);
    }
    raise(number);
}

/* The allocator's own messages do not say which operation of which seed they came from. */
void report_watch_signals(void)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTERM};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        signal(numbers[i], on_signal);
}

void report_complaint(const struct run *run, const char *format, ...)
{
    struct message message = {0};
    va_list list;

    append(&message, "stress: FAILED: ");
    va_start(list, format);
    append_list(&message, format, list);
    va_end(list);
    append(&message, "\n");
    append_replay(&message, run);
    send(&message);
}

void report_failure(
    const struct seat *seat, enum operation operation, const struct block *block,
    const char *format, ...)
{
    struct message message = {0};
    va_list list;

    append(&message, "stress: FAILED: %s: ", operation_names[operation]);
    va_start(list, format);
    append_list(&message, format, list);
    va_end(list);
    append(
        &message, "\n  where: seed %llu, threads %u, thread %u, operation %llu\n",
        (unsigned long long)seat->run->seed, seat->run->threads, seat->index,
        (unsigned long long)seat->operation);
    append(
        &message,
        "  block: %p, size %u, usable %u, alignment %lu, pattern 0x%016llx,"
        " from %s in operation %u of thread %u\n",
        block->address, block->size, block->usable, 1UL << block->align_log2,
        (unsigned long long)block->pattern, operation_names[block->origin], block->birth_operation,
        block->birth_seat);
    append_replay(&message, seat->run);
    if (!atomic_flag_test_and_set(&reported))
        send(&message);
    abort();
}

static double millions_per_second(const struct totals *totals)
{
    return totals->seconds > 0 ? (double)totals->operations / totals->seconds * 1e-6 : 0;
}

static void print_tiers(const struct totals *totals)
{
    printf(
        "  %-6s %14s %14s %14s %14s %12s %12s %12s\n", "tier", "malloc_calls", "hits", "free_calls",
        "hits", "refills", "flushes", "remote");
    for (unsigned i = 0; i < TIERS; i++) {
        const struct hakmem_usage *tier = &totals->tier[i];

        printf(
            "  %-6s %14llu %14llu %14llu %14llu %12llu %12llu %12llu\n", tier_names[i],
            (unsigned long long)tier->malloc_calls, (unsigned long long)tier->malloc_hits,
            (unsigned long long)tier->free_calls, (unsigned long long)tier->free_hits,
            (unsigned long long)tier->refills, (unsigned long long)tier->flushes,
            (unsigned long long)tier->remote_frees);
    }
}

void report_results_text(const struct options *options, const struct totals *totals, bool clean)
{
    printf(
        "stress of hakmem %s: seeds %llu to %llu, %llu operations each\n", hakmem_version(),
        (unsigned long long)options->first_seed,
        (unsigned long long)(options->first_seed + options->seeds - 1),
        (unsigned long long)options->operations);
    for (unsigned i = 0; i < options->configurations; i++) {
        const struct totals *now = &totals[i];

        if (now->threads == 0)
            continue;
        printf(
            "%u threads: %llu operations in %.2f s, %.2f million/s\n"
            "  %llu thread lives, %llu blocks handed over, peak of leased bytes %llu,"
            " %llu draws over budget\n  ",
            now->threads, (unsigned long long)now->operations, now->seconds,
            millions_per_second(now), (unsigned long long)now->generations,
            (unsigned long long)now->handed_over, (unsigned long long)now->peak_leased,
            (unsigned long long)now->short_of_budget);
        for (unsigned op = 0; op < OP_COUNT; op++)
            printf(
                "%s %llu%s", operation_names[op], (unsigned long long)now->counts[op],
                op + 1 == OP_COUNT ? "\n"
                : op % 5 == 4      ? ",\n  "
                                   : ", ");
        print_tiers(now);
    }
    printf("%s\n", clean ? "clean: 0 failures" : "FAILED");
}

static void print_json_configuration(const struct totals *totals)
{
    printf(
        "{\"threads\":%u,\"operations\":%llu,\"seconds\":%.3f,\"million_per_second\":%.3f,"
        "\"thread_lives\":%llu,\"handed_over\":%llu,\"peak_leased_bytes\":%llu,"
        "\"over_budget\":%llu,\"allocated\":%llu,\"freed\":%llu,\"calls\":{",
        totals->threads, (unsigned long long)totals->operations, totals->seconds,
        millions_per_second(totals), (unsigned long long)totals->generations,
        (unsigned long long)totals->handed_over, (unsigned long long)totals->peak_leased,
        (unsigned long long)totals->short_of_budget, (unsigned long long)totals->fresh,
        (unsigned long long)totals->freed);
    for (unsigned op = 0; op < OP_COUNT; op++)
        printf(
            "%s\"%s\":%llu", op == 0 ? "" : ",", operation_names[op],
            (unsigned long long)totals->counts[op]);
    printf("},\"tiers\":{");
    for (unsigned i = 0; i < TIERS; i++) {
        const struct hakmem_usage *tier = &totals->tier[i];

        printf(
            "%s\"%s\":{\"malloc_calls\":%llu,\"malloc_hits\":%llu,\"free_calls\":%llu,"
            "\"free_hits\":%llu,\"refills\":%llu,\"flushes\":%llu,\"remote_frees\":%llu}",
            i == 0 ? "" : ",", tier_names[i], (unsigned long long)tier->malloc_calls,
            (unsigned long long)tier->malloc_hits, (unsigned long long)tier->free_calls,
            (unsigned long long)tier->free_hits, (unsigned long long)tier->refills,
            (unsigned long long)tier->flushes, (unsigned long long)tier->remote_frees);
    }
    printf("}}");
}

void report_results_json(const struct options *options, const struct totals *totals, bool clean)
{
    printf(
        "{\"version\":\"%s\",\"first_seed\":%llu,\"seeds\":%llu,\"operations_per_seed\":%llu,"
        "\"clean\":%s,\"configurations\":[",
        hakmem_version(), (unsigned long long)options->first_seed,
        (unsigned long long)options->seeds, (unsigned long long)options->operations,
        clean ? "true" : "false");
    for (unsigned i = 0; i < options->configurations; i++) {
        if (i > 0)
            printf(",");
        print_json_configuration(&totals[i]);
    }
    printf("]}\n");
}
