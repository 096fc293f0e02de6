/* The statistics as one JSON object: see report.h. */
#include "observe/report.h"

#include "api/options.h"
#include "map/size_class.h"
#include "observe/stats.h"

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
