/* The statistics as a table for people: see report.h. */
#include "observe/report.h"

#include "api/options.h"
#include "map/size_class.h"
#include "observe/stats.h"
#include "os/os.h"

static void print_share(struct text *text, uint64_t part, uint64_t whole)
{
    uint64_t tenths = whole ? (part * 1000 + whole / 2) / whole : 0;
    text_unsigned_padded(text, tenths / 10, 5);
    text_char(text, '.');
    text_unsigned(text, tenths % 10);
    text_char(text, '%');
}

static void print_tiers(struct text *text, const struct snapshot *now)
{
    uint64_t mallocs = now->total.malloc_calls + now->total.libc_calls;
    uint64_t frees = now->total.free_calls + now->total.libc_calls;
    text_string(
        text, "tier        mallocs   share   hits          frees   share   hits"
              "     live blocks        live KiB   committed KiB\n");
    for (unsigned tier = 0; tier < TIER_COUNT; tier++) {
        const struct hakmem_usage *usage = &now->tier[tier];
        text_string_padded(text, stats_tier_names[tier], 5);
        text_unsigned_padded(text, usage->malloc_calls, 14);
        print_share(text, usage->malloc_calls, mallocs);
        print_share(text, usage->malloc_hits, usage->malloc_calls);
        text_unsigned_padded(text, usage->free_calls, 14);
        print_share(text, usage->free_calls, frees);
        print_share(text, usage->free_hits, usage->free_calls);
        text_unsigned_padded(text, usage->live_blocks, 15);
        text_unsigned_padded(text, usage->live_bytes / KIB, 16);
        text_unsigned_padded(text, usage->committed_bytes / KIB, 16);
        text_char(text, '\n');
    }
    text_string_padded(text, "libc", 5);
    text_unsigned_padded(text, now->total.libc_calls, 14);
    print_share(text, now->total.libc_calls, mallocs);
    text_char(text, '\n');
}

static void print_line(struct text *text, const char *name, uint64_t bytes)
{
    text_string_padded(text, name, 22);
    text_unsigned_padded(text, bytes / KIB, 12);
    text_string(text, " KiB\n");
}

static void print_count(struct text *text, const char *name, uint64_t count)
{
    text_char(text, ' ');
    text_string(text, name);
    text_char(text, '=');
    text_unsigned(text, count);
}

static void print_classes(struct text *text)
{
    text_string(
        text, "class size       mallocs         frees   refills   flushes    remote"
              "   slabs          live   cached\n");
    for (unsigned class = 1; class <= SIZE_COUNT; class ++) {
        struct hakmem_usage usage;
        stats_collect_class(class, &usage);
        if (!usage.malloc_calls && !usage.slabs)
            continue;
        text_unsigned_padded(text, size_classes[class].size, 10);
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

void report_table(struct text *text)
{
    struct snapshot now;
    stats_collect(&now);
    text_string(text, "hakmem " HAKMEM_VERSION " statistics of process ");
    text_unsigned(text, (uint64_t)os_process_id());
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
    print_line(text, "mapped", now.total.mapped_bytes);
    print_line(text, "committed", now.total.committed_bytes);
    print_line(text, "retained", now.total.retained_bytes);
    print_line(text, "purged so far", now.total.purged_bytes);
    print_line(text, "cached in magazines", now.total.cached_bytes);
    print_line(text, "metadata", now.total.metadata_bytes);
    text_string(text, "thread heaps in use   ");
    text_unsigned_padded(text, now.total.threads, 12);
    text_string(text, "\nsystem calls:");
    print_count(text, "mmap", now.total.mmap_calls);
    print_count(text, "munmap", now.total.munmap_calls);
    print_count(text, "mremap", now.total.mremap_calls);
    print_count(text, "madvise", now.total.madvise_calls);
    print_count(text, "mprotect", now.total.mprotect_calls);
    print_count(text, "futex", now.total.futex_calls);
    text_string(text, "\n\n");
    print_classes(text);
}
