/* The statistics as one JSON object: see report.h. */
#include "report/report.h"

#include <string.h>

#include "api/options.h"
#include "map/size_class.h"
#include "report/cycles_report.h"
#include "report/stats.h"
#include "scope/tree.h"

/* Names of members, each ended by a NUL, in the order of the fields that are their values. */
static const char usage_names[] =
    "live_blocks\0live_bytes\0cached_blocks\0cached_bytes\0malloc_calls\0malloc_hits\0"
    "free_calls\0free_hits\0refills\0flushes\0remote_frees\0slabs\0committed_bytes\0"
    "transfer_blocks\0empty_slabs\0";
static const char memory_names[] =
    "libc_calls\0reallocs_in_place\0mapped_bytes\0committed_bytes\0retained_bytes\0"
    "purged_bytes\0metadata_bytes\0threads\0";

static void json_name(struct text *text, const char *name)
{
    text_char(text, '"');
    text_string(text, name);
    text_string(text, "\":");
}

void json_number(struct text *text, const char *name, uint64_t value)
{
    json_name(text, name);
    text_unsigned(text, value);
    text_char(text, ',');
}

/* A member for each of the first `count` names. */
static void json_numbers(struct text *text, const char *names, const uint64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++, names += strlen(names) + 1)
        json_number(text, names, values[i]);
}

void json_close(struct text *text, const char *end)
{
    text->length--;
    text_string(text, end);
}

/* Length of the UTF-8 sequence that `bytes` begins with; 0: it begins with none. */
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
    /* An overlong form, a surrogate, or above the last character. */
    unsigned char second = wanted > 1 ? (unsigned char)bytes[1] : 0;
    bool is_wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                    (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
    return is_wrong ? 0 : wanted;
}

/* Paths and arguments may have any encoding; JSON is in UTF-8. */
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
    const char *argument = NULL;
    size_t length;
    text_string(text, "\"command\":[");
    while ((argument = process_next_argument(process, argument, &length)) != NULL) {
        text_string(text, argument == process->command ? "" : ",");
        json_string(text, argument, length);
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
    json_numbers(text, usage_names, (const uint64_t *)total, STATS_SUMS);
    json_close(text, "},");
}

static void json_usage(struct text *text, const struct hakmem_usage *usage)
{
    json_numbers(text, usage_names, (const uint64_t *)usage, USAGE_FIELDS);
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
    for (unsigned size_class = 1; size_class <= SIZE_COUNT; size_class++) {
        struct hakmem_usage usage;
        stats_collected_class(size_class, &usage);
        text_char(text, '{');
        json_number(text, "size", size_classes[size_class].size);
        json_usage(text, &usage);
        text_char(text, ',');
    }
    json_close(text, "]");
}

/* How much is resident is asked of the system. */
static void json_scopes(struct text *text, bool ask)
{
    struct hakmem_scope_figures usage;
    char name[SCOPE_PATH_BYTES];
    text_string(text, ",\"scopes\":[ ");
    for (struct hakmem_scope *scope = scope_first(); scope; scope = scope->next) {
        if (!scope_look(scope, &usage))
            continue;
        scope_name(scope, name);
        text_char(text, '{');
        json_name(text, "name");
        json_string(text, name, strlen(name));
        text_char(text, ',');
        json_number(text, "live_blocks", usage.live_blocks);
        json_number(text, "live_bytes", usage.live_bytes);
        if (ask)
            json_number(text, "resident_bytes", scope_resident(scope));
        json_number(text, "limit_bytes", usage.limit_bytes);
        json_close(text, "},");
    }
    json_close(text, "]");
}

void report_json(struct text *text, const struct process *process)
{
    struct snapshot now;
    const uint64_t *totals = (const uint64_t *)&now.total;
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
    json_numbers(text, memory_names, totals + STATS_SUMS, STATS_MEMORY);
    json_number(text, "transfer_bytes", now.total.transfer_bytes);
    json_number(text, "empty_bytes", now.total.empty_bytes);
    json_number(text, "malloc_slow_ns", now.total.malloc_slow_ns);
    json_number(text, "free_slow_ns", now.total.free_slow_ns);
    json_number(text, "lock_waits", now.total.lock_waits);
    json_number(text, "lock_wait_ns", now.total.lock_wait_ns);
    json_number(text, "memory_limit_bytes", now.total.memory_limit_bytes);
    json_number(text, "limit_purges", now.total.limit_purges);
    if (HAKMEM_MEASURING)
        cycles_json(text);
    text_string(text, "\"syscalls\":{");
    json_numbers(text, stats_syscall_names, totals + STATS_SUMS + STATS_MEMORY, STATS_SYSCALLS);
    json_close(text, "},\"classes\":[");
    json_classes(text);
    if (SCOPES)
        json_scopes(text, process);
    text_char(text, '}');
}
