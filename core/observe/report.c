/* See report.h. */
#include "observe/report.h"

#include "api/options.h"
#include "map/size_class.h"
#include "observe/stats.h"
#include "os/os.h"

static const char usage_names[][16] = {
    "live_blocks",  "live_bytes", "cached_blocks",   "cached_bytes", "malloc_calls",
    "malloc_hits",  "free_calls", "free_hits",       "refills",      "flushes",
    "remote_frees", "slabs",      "committed_bytes",
};

_Static_assert(
    sizeof(struct hakmem_usage) == ARRAY_LENGTH(usage_names) * sizeof(uint64_t),
    "every field has a name");

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_name(struct text *text, const char *name)
{
    text_char(text, '"');
    text_string(text, name);
    text_string(text, "\":");
}

static void json_number(struct text *text, const char *name, uint64_t value)
{
    json_name(text, name);
    text_unsigned(text, value);
    text_char(text, ',');
}

/* Replaces the comma behind the last member. */
static void json_close(struct text *text, const char *end)
{
    text->length--;
    text_string(text, end);
}

static void json_usage(struct text *text, const struct hakmem_usage *usage)
{
    const uint64_t *values = (const uint64_t *)usage;
    for (size_t i = 0; i < ARRAY_LENGTH(usage_names); i++)
        json_number(text, usage_names[i], values[i]);
    json_close(text, "}");
}

static void json_options(struct text *text)
{
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const char *quote = options_takes_word(i) ? "\"" : "";
        json_name(text, options_name(i));
        text_string(text, quote);
        options_print_value(text, i);
        text_string(text, quote);
        text_char(text, ',');
    }
    json_close(text, "}");
}

static void json_classes(struct text *text)
{
    for (unsigned class = 1; class <= SIZE_COUNT; class ++) {
        struct hakmem_usage usage;
        stats_collect_class(class, &usage);
        text_char(text, '{');
        json_number(text, "size", size_classes[class].size);
        json_usage(text, &usage);
        text_char(text, ',');
    }
    json_close(text, "]");
}

static void json_syscalls(struct text *text, const struct hakmem_stats *total)
{
    json_number(text, "mmap", total->mmap_calls);
    json_number(text, "munmap", total->munmap_calls);
    json_number(text, "mremap", total->mremap_calls);
    json_number(text, "madvise", total->madvise_calls);
    json_number(text, "mprotect", total->mprotect_calls);
    json_number(text, "futex", total->futex_calls);
    json_close(text, "}");
}

void report_json(struct text *text)
{
    struct snapshot now;
    stats_collect(&now);
    text_string(text, "{\"format\":1,\"version\":\"" HAKMEM_VERSION "\",\"options\":{");
    json_options(text);
    text_string(text, ",\"tiers\":{");
    for (unsigned tier = 0; tier < TIER_COUNT; tier++) {
        json_name(text, stats_tier_names[tier]);
        text_char(text, '{');
        json_usage(text, &now.tier[tier]);
        text_char(text, ',');
    }
    json_close(text, "},");
    json_number(text, "libc_calls", now.total.libc_calls);
    json_number(text, "reallocs_in_place", now.total.reallocs_in_place);
    json_number(text, "mapped_bytes", now.total.mapped_bytes);
    json_number(text, "committed_bytes", now.total.committed_bytes);
    json_number(text, "retained_bytes", now.total.retained_bytes);
    json_number(text, "purged_bytes", now.total.purged_bytes);
    json_number(text, "metadata_bytes", now.total.metadata_bytes);
    json_number(text, "threads", now.total.threads);
    text_string(text, "\"syscalls\":{");
    json_syscalls(text, &now.total);
    text_string(text, ",\"classes\":[");
    json_classes(text);
    text_char(text, '}');
}

/* ---- XML ------------------------------------------------------------------------------------- */

static void xml_attribute(struct text *text, const char *name, uint64_t value)
{
    text_char(text, ' ');
    text_string(text, name);
    text_string(text, "=\"");
    text_unsigned(text, value);
    text_char(text, '"');
}

void report_xml(struct text *text)
{
    struct snapshot now;
    stats_collect(&now);
    text_string(text, "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n");
    for (unsigned class = 1; class <= SIZE_COUNT; class ++) {
        struct hakmem_usage usage;
        stats_collect_class(class, &usage);
        if (!usage.slabs)
            continue;
        text_string(text, "<size");
        xml_attribute(text, "to", size_classes[class].size);
        xml_attribute(text, "live", usage.live_blocks);
        xml_attribute(text, "cached", usage.cached_blocks);
        xml_attribute(text, "committed", usage.committed_bytes);
        text_string(text, "/>\n");
    }
    text_string(text, "</sizes>\n");
    for (unsigned tier = 0; tier < TIER_COUNT; tier++) {
        text_string(text, "<total type=\"");
        text_string(text, stats_tier_names[tier]);
        text_char(text, '"');
        xml_attribute(text, "count", now.tier[tier].live_blocks);
        xml_attribute(text, "size", now.tier[tier].live_bytes);
        text_string(text, "/>\n");
    }
    text_string(text, "<system type=\"current\"");
    xml_attribute(text, "size", now.total.mapped_bytes);
    text_string(text, "/>\n<system type=\"committed\"");
    xml_attribute(text, "size", now.total.committed_bytes);
    text_string(text, "/>\n<system type=\"retained\"");
    xml_attribute(text, "size", now.total.retained_bytes);
    text_string(text, "/>\n</heap>\n</malloc>\n");
}

/* ---- The table ------------------------------------------------------------------------------- */

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

static void print_table(struct text *text)
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

/* ---- Output ---------------------------------------------------------------------------------- */

/* Enough for any report; mapped only while one is made. */
static const size_t report_capacity = 128 * KIB;

static void write_report(int fd, void (*make)(struct text *))
{
    char *buffer = os_map(report_capacity, os_page_size(), NULL);
    if (!buffer)
        return;
    struct text text;
    text_init(&text, buffer, report_capacity);
    make(&text);
    os_write(fd, buffer, text_stored(&text));
    os_unmap(buffer, report_capacity);
}

void report_warn_if_idle(void)
{
    static const char message[] =
        "hakmem: served no call: this program has a malloc of its own, or never called it\n";
    struct snapshot now;
    stats_collect(&now);
    if (now.total.malloc_calls + now.total.libc_calls == 0)
        os_write(STDERR, message, sizeof message - 1);
}

void report_print(int fd)
{
    write_report(fd, print_table);
}

/* Longer paths no system call takes. */
enum { PATH_BYTES = 4096 };

static void complain_unwritable(const char *path)
{
    static const char prefix[] = "hakmem: option stats_file: cannot write ";
    char buffer[sizeof prefix + PATH_BYTES];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_string(&text, prefix);
    for (; *path && text.length < sizeof buffer - 2; path++)
        text_char(&text, *path);
    text_char(&text, '\n');
    text_terminate(&text);
    os_write(STDERR, buffer, text_stored(&text));
}

void report_write_file(const char *path)
{
    char buffer[PATH_BYTES];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    for (const char *c = path; *c; c++) {
        if (c[0] == '%' && c[1] == 'p') {
            text_unsigned(&text, (uint64_t)os_process_id());
            c++;
        } else {
            text_char(&text, *c);
        }
    }
    /* A path that was cut off would be that of another file. */
    bool whole = text.length < sizeof buffer;
    int fd = whole ? os_create_file(text_terminate(&text)) : -1;
    if (fd < 0) {
        complain_unwritable(path);
        return;
    }
    write_report(fd, report_json);
    os_close(fd);
}
