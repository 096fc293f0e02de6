/* The statistics as a table for people: see report.h. */
#include "report/report.h"

#include <string.h>

#include "api/options.h"
#include "map/size_class.h"
#include "report/cycles_report.h"
#include "report/stats.h"
#include "scope/tree.h"

static void print_share(struct text *text, uint64_t part, uint64_t whole)
{
    uint64_t tenths = whole ? (part * 1000 + whole / 2) / whole : 0;
    text_unsigned_padded(text, tenths / 10, 5);
    text_char(text, '.');
    text_unsigned(text, tenths % 10);
    text_char(text, '%');
}

/* Right-aligned, in the unit that leaves one to four digits before the point. */
static void print_bytes(struct text *text, uint64_t bytes, unsigned width)
{
    static const char units[][4] = {"B", "KiB", "MiB", "GiB", "TiB"};
    char buffer[40];
    struct text number;
    unsigned unit = 0;
    uint64_t tenths = bytes * 10;
    for (; tenths >= 10240 && unit < ARRAY_LENGTH(units) - 1; unit++)
        tenths = (tenths + 512) / 1024;
    text_init(&number, buffer, sizeof buffer);
    text_unsigned(&number, tenths / 10);
    if (unit) {
        text_char(&number, '.');
        text_unsigned(&number, tenths % 10);
    }
    text_char(&number, ' ');
    text_string(&number, units[unit]);
    for (size_t i = number.length; i < width; i++)
        text_char(text, ' ');
    text_string(text, text_terminate(&number));
}

/* The cells of the rows of tiers and of their sum. */
struct row {
    uint64_t mallocs, malloc_hits, frees, free_hits, live_blocks, live_bytes, committed_bytes;
};

static void print_tier_row(
    struct text *text, const char *name, const struct row *row, const struct row *all)
{
    text_string_padded(text, name, 5);
    text_unsigned_padded(text, row->mallocs, 14);
    print_share(text, row->mallocs, all->mallocs);
    print_share(text, row->malloc_hits, row->mallocs);
    text_unsigned_padded(text, row->frees, 14);
    print_share(text, row->frees, all->frees);
    print_share(text, row->free_hits, row->frees);
    text_unsigned_padded(text, row->live_blocks, 15);
    print_bytes(text, row->live_bytes, 13);
    print_bytes(text, row->committed_bytes, 13);
    text_char(text, '\n');
}

static void print_tiers(struct text *text, const struct snapshot *now)
{
    const struct hakmem_stats *total = &now->total;
    const struct row all = {
        total->malloc_calls + total->libc_calls,
        total->malloc_hits,
        total->free_calls + total->libc_calls,
        total->free_hits,
        total->live_blocks,
        total->live_bytes,
        total->committed_bytes};
    text_string(
        text, "tier        mallocs   share   hits          frees   share   hits"
              "    live blocks         live    committed\n");
    for (unsigned tier = 0; tier < TIER_COUNT; tier++) {
        const struct hakmem_usage *usage = &now->tier[tier];
        const struct row row = {usage->malloc_calls,   usage->malloc_hits, usage->free_calls,
                                usage->free_hits,      usage->live_blocks, usage->live_bytes,
                                usage->committed_bytes};
        print_tier_row(text, stats_tier_names[tier], &row, &all);
    }
    print_tier_row(text, "all", &all, &all);
    if (total->libc_calls) {
        text_string(text, "of these, passed on to the C library: ");
        text_unsigned(text, total->libc_calls);
        text_char(text, '\n');
    }
}

static void print_line(struct text *text, const char *name, uint64_t bytes, const char *meaning)
{
    text_string_padded(text, name, 14);
    print_bytes(text, bytes, 13);
    text_string(text, "   ");
    text_string(text, meaning);
    text_char(text, '\n');
}

static void print_memory(
    struct text *text, const struct hakmem_stats *total, const struct process *process)
{
    print_line(text, "live", total->live_bytes, "in blocks that the program has");
    print_line(
        text, "cached", total->cached_bytes, "in free blocks, in magazines and transfer caches");
    print_line(text, "  in transfer", total->transfer_bytes, "of these, in transfer caches");
    print_line(text, "free dirty", total->retained_bytes, "free, not given back to the system");
    print_line(text, "metadata", total->metadata_bytes, "address space of hakmem's own records");
    print_line(text, "committed", total->committed_bytes, "in slabs and big blocks");
    print_line(
        text, "  in empties", total->empty_bytes, "of these, in slabs kept for a next burst");
    print_line(text, "mapped", total->mapped_bytes, "address space for blocks");
    print_line(text, "purged so far", total->purged_bytes, "given back to the system");
    if (total->memory_limit_bytes) {
        print_line(text, "limit", total->memory_limit_bytes, "of what may be resident");
        text_string_padded(text, "  near it", 14);
        text_unsigned_padded(text, total->limit_purges, 9);
        text_string(text, "       purges because of that\n");
    }
    if (process->rss_bytes)
        print_line(text, "RSS", process->rss_bytes, "resident memory of the process");
    if (process->peak_rss_bytes)
        print_line(text, "peak RSS", process->peak_rss_bytes, "at its height");
}

static void print_syscalls(struct text *text, const struct hakmem_stats *total)
{
    const uint64_t *counts = (const uint64_t *)total + STATS_SUMS + STATS_MEMORY;
    const char *name = stats_syscall_names;
    text_string(text, "\nsystem calls:");
    for (unsigned i = 0; i < STATS_SYSCALLS; i++, name += strlen(name) + 1) {
        text_char(text, ' ');
        text_string(text, name);
        text_char(text, '=');
        text_unsigned(text, counts[i]);
    }
}

static void print_classes(struct text *text)
{
    text_string(
        text, "class size       mallocs         frees   refills   flushes    remote"
              "   slabs          live   cached\n");
    for (unsigned size_class = 1; size_class <= SIZE_COUNT; size_class++) {
        struct hakmem_usage usage;
        stats_collected_class(size_class, &usage);
        if (!usage.malloc_calls && !usage.slabs)
            continue;
        text_unsigned_padded(text, size_classes[size_class].size, 10);
        text_unsigned_padded(text, usage.malloc_calls, 14);
        text_unsigned_padded(text, usage.free_calls, 14);
        text_unsigned_padded(text, usage.refills, 10);
        text_unsigned_padded(text, usage.flushes, 10);
        text_unsigned_padded(text, usage.remote_frees, 10);
        text_unsigned_padded(text, usage.slabs, 8);
        text_unsigned_padded(text, usage.live_blocks, 14);
        text_unsigned_padded(text, usage.cached_blocks, 9);
        text_char(text, '\n');
    }
}

/* The same line of heads and figures as `hakmem inspect` has. */
static void print_scopes(struct text *text)
{
    struct hakmem_scope_figures usage;
    char name[SCOPE_PATH_BYTES];
    const char *head =
        "\nscope, with those inside it        blocks         live     resident        limit\n";
    for (struct hakmem_scope *scope = scope_first(); scope; scope = scope->next) {
        if (!scope_look(scope, &usage))
            continue;
        text_string(text, head);
        head = "";
        scope_name(scope, name);
        text_string_padded(text, name, 27);
        text_unsigned_padded(text, usage.live_blocks, 14);
        print_bytes(text, usage.live_bytes, 13);
        print_bytes(text, scope_resident(scope), 13);
        if (usage.limit_bytes)
            print_bytes(text, usage.limit_bytes, 13);
        text_char(text, '\n');
    }
}

/* The arguments on one line, with blanks between them. */
static void print_command(struct text *text, const struct process *process)
{
    const char *argument = NULL;
    size_t length;
    text_string(text, "\ncommand:");
    while ((argument = process_next_argument(process, argument, &length)) != NULL) {
        text_char(text, ' ');
        text_foreign(text, argument, length);
    }
    if (process->command_bytes == COMMAND_BYTES)
        text_string(text, " ...");
}

void report_table(struct text *text, const struct process *process)
{
    struct snapshot now;
    stats_collect(&now);
    text_string(text, "hakmem " HAKMEM_VERSION " statistics of process ");
    text_unsigned(text, (uint64_t)process->id);
    if (process->program_bytes) {
        text_string(text, ": ");
        text_foreign(text, process->program, process->program_bytes);
    }
    if (process->command_bytes)
        print_command(text, process);
    text_string(text, "\noptions:");
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        text_char(text, ' ');
        text_string(text, options_name(i));
        text_char(text, '=');
        options_print_value(text, i);
    }
    text_string(text, "\n\n");
    print_tiers(text, &now);
    text_char(text, '\n');
    print_memory(text, &now.total, process);
    text_string(text, "thread heaps in use: ");
    text_unsigned(text, now.total.threads);
    print_syscalls(text, &now.total);
    text_char(text, '\n');
    if (HAKMEM_MEASURING)
        cycles_print(text);
    text_char(text, '\n');
    print_classes(text);
    if (SCOPES)
        print_scopes(text);
}
