/* The statistics as the XML of malloc_info: see report.h. */
#include "report/report.h"

#include "map/size_class.h"
#include "report/stats.h"

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
    for (unsigned size_class = 1; size_class <= SIZE_COUNT; size_class++) {
        struct hakmem_usage usage;
        stats_collected_class(size_class, &usage);
        if (!usage.slabs)
            continue;
        text_string(text, "<size");
        xml_attribute(text, "to", size_classes[size_class].size);
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
