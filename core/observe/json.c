/* The statistics as one JSON object: see report.h. */
#include "observe/report.h"

#include <string.h>

#include "api/options.h"
#include "map/size_class.h"
#include "observe/locks.h"
#include "observe/stats.h"
#include "os/lock_profile.h"
#include "slab/shard.h"

static const char usage_names[][16] = {
    "live_blocks",  "live_bytes", "cached_blocks",   "cached_bytes", "malloc_calls",
    "malloc_hits",  "free_calls", "free_hits",       "refills",      "flushes",
    "remote_frees", "slabs",      "committed_bytes",
};

_Static_assert(
    sizeof(struct hakmem_usage) == ARRAY_LENGTH(usage_names) * sizeof(uint64_t),
    "every field has a name");

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

/* Bytes of the UTF-8 sequence that `bytes` begins with; 0 when it is none. */
static size_t sequence_length(const char *bytes, size_t length)
{
    static const unsigned char leads[] = {0x80, 0xc2, 0xe0, 0xf0, 0xf5}; /* of 1 .. 4 bytes */
    unsigned char first = (unsigned char)bytes[0];
    size_t wanted = 1;
    if (first >= leads[0])
        for (wanted = 0; wanted < ARRAY_LENGTH(leads) && first >= leads[wanted]; wanted++)
            continue;
    if (first >= leads[0] && (first < leads[1] || first >= leads[4] || wanted > length))
        return 0;
    for (size_t i = 1; i < wanted; i++)
        if (((unsigned char)bytes[i] & 0xc0) != 0x80)
            return 0;
    /* Longer than need be, a surrogate, or above the last character. */
    unsigned char second = wanted > 1 ? (unsigned char)bytes[1] : 0;
    bool is_wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                    (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
    return is_wrong ? 0 : wanted;
}

/* A string that somebody else wrote: paths and arguments are in any encoding, JSON is in UTF-8. */
static void json_string(struct text *text, const char *bytes, size_t length)
{
    text_char(text, '"');
    for (size_t i = 0; i < length;) {
        size_t sequence = sequence_length(bytes + i, length - i);
        unsigned char c = (unsigned char)bytes[i];
        if (sequence == 0) {
            text_string(text, "\\ufffd");
        } else if (c < ' ') {
            text_string(text, "\\u00");
            text_char(text, "01"[c >> 4]);
            text_char(text, "0123456789abcdef"[c & 15]);
        } else {
            if (c == '"' || c == '\\')
                text_char(text, '\\');
            for (size_t j = 0; j < sequence; j++)
                text_char(text, bytes[i + j]);
        }
        i += sequence ? sequence : 1;
    }
    text_char(text, '"');
}

static void json_command(struct text *text, const struct process *process)
{
    text_string(text, "\"command\":[");
    for (size_t start = 0; start < process->command_bytes;) {
        const char *argument = process->command + start;
        size_t length = strnlen(argument, process->command_bytes - start);
        text_string(text, start ? "," : "");
        json_string(text, argument, length);
        start += length + 1;
    }
    text_char(text, ']');
}

static void json_process(struct text *text, const struct process *process)
{
    text_string(text, "\"process\":{");
    json_number(text, "id", (uint64_t)process->id);
    if (process->parent)
        json_number(text, "parent", (uint64_t)process->parent);
    if (process->rss_bytes)
        json_number(text, "rss_bytes", process->rss_bytes);
    if (process->peak_rss_bytes)
        json_number(text, "peak_rss_bytes", process->peak_rss_bytes);
    json_name(text, "program");
    json_string(text, process->program, process->program_bytes);
    text_char(text, ',');
    json_command(text, process);
    text_string(text, "},");
}

static void json_totals(struct text *text, const struct hakmem_stats *total)
{
    text_string(text, "\"totals\":{");
    json_number(text, "live_blocks", total->live_blocks);
    json_number(text, "live_bytes", total->live_bytes);
    json_number(text, "cached_blocks", total->cached_blocks);
    json_number(text, "cached_bytes", total->cached_bytes);
    json_number(text, "malloc_calls", total->malloc_calls);
    json_number(text, "malloc_hits", total->malloc_hits);
    json_number(text, "free_calls", total->free_calls);
    json_number(text, "free_hits", total->free_hits);
    json_close(text, "},");
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

static void json_lock(struct text *text, const char *name, const struct lock_usage *usage)
{
    json_name(text, name);
    text_char(text, '{');
    json_number(text, "acquisitions", usage->acquisitions);
    json_number(text, "waits", usage->waits);
    json_number(text, "handovers", usage->handovers);
    json_number(text, "interrupted", usage->interrupted);
    json_number(text, "waited_ns", usage->waited_ns);
    json_number(text, "held_ns", usage->held_ns);
    json_close(text, "},");
}

/* In the build that `make scale` measures with. */
static void json_locks(struct text *text)
{
    json_number(text, "lock_profile_cost_ps", lock_profile_cost_ps());
    json_number(text, "shard_max", SHARD_MAX);
    text_string(text, "\"locks\":{");
    for (enum lock_kind kind = 0; kind < LOCK_KINDS; kind++) {
        struct lock_kind_usage usage;
        locks_collect(kind, &usage);
        json_name(text, lock_kind_names[kind].name);
        text_string(text, "{\"scope\":\"");
        text_string(text, lock_kind_names[kind].scope);
        text_string(text, "\",");
        json_number(text, "locks", usage.locks);
        json_lock(text, "all", &usage.all);
        json_lock(text, "busiest", &usage.busy);
        json_lock(text, "most_met", &usage.met);
        json_close(text, "},");
    }
    json_close(text, "},");
}

void report_json(struct text *text, const struct process *process)
{
    struct snapshot now;
    stats_collect(&now);
    text_string(text, "{\"format\":1,\"version\":\"" HAKMEM_VERSION "\",");
    if (process)
        json_process(text, process);
    text_string(text, "\"options\":{");
    json_options(text);
    text_string(text, ",\"tiers\":{");
    for (unsigned tier = 0; tier < TIER_COUNT; tier++) {
        json_name(text, stats_tier_names[tier]);
        text_char(text, '{');
        json_usage(text, &now.tier[tier]);
        text_char(text, ',');
    }
    json_close(text, "},");
    json_totals(text, &now.total);
    json_number(text, "libc_calls", now.total.libc_calls);
    json_number(text, "reallocs_in_place", now.total.reallocs_in_place);
    json_number(text, "mapped_bytes", now.total.mapped_bytes);
    json_number(text, "committed_bytes", now.total.committed_bytes);
    json_number(text, "retained_bytes", now.total.retained_bytes);
    json_number(text, "purged_bytes", now.total.purged_bytes);
    json_number(text, "metadata_bytes", now.total.metadata_bytes);
    json_number(text, "threads", now.total.threads);
    if (HAKMEM_LOCK_PROFILE)
        json_locks(text);
    text_string(text, "\"syscalls\":{");
    json_syscalls(text, &now.total);
    text_string(text, ",\"classes\":[");
    json_classes(text);
    text_char(text, '}');
}
