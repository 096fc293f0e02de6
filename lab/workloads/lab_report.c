/* The report: one JSON object on stdout. Names are identifiers, so nothing has to be escaped. */
#include "lab_internal.h"
#include <math.h>
#include <stdarg.h>
#include <sys/mman.h>

struct figure {
    char name[56];
    double value;
};

/* Main thread, or the one that reports at the time. The table grows by mapping a larger one. */
static struct {
    struct figure *table;
    size_t count, capacity;
} figures;

void lab_figure(double value, const char *format, ...)
{
    if (figures.count == figures.capacity) {
        size_t capacity = figures.capacity ? 2 * figures.capacity : 64;
        struct figure *table = lab_reserve(capacity * sizeof *table);
        if (figures.capacity) {
            memcpy(table, figures.table, figures.count * sizeof *table);
            lab_release(figures.table, figures.capacity * sizeof *table);
        }
        figures.table = table;
        figures.capacity = capacity;
    }
    struct figure *figure = &figures.table[figures.count++];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(figure->name, sizeof figure->name, format, arguments);
    va_end(arguments);
    if (!isfinite(value)) {
        lab_fail("the figure %s is not a number", figure->name);
    }
    figure->value = value;
}

static void write_config(const struct lab_flag *flags, size_t flag_count, const char *separator)
{
    for (size_t i = 0; i < flag_count; i++, separator = ",") {
        const struct lab_flag *flag = &flags[i];
        printf("%s\"%s\":", separator, flag->name);
        if (flag->kind == LAB_CHOICE) {
            printf("\"%s\"", flag->choices[*flag->variable]);
        } else {
            printf("%llu", (unsigned long long)*flag->variable);
        }
    }
}

static void write_sizes(const struct lab_recorder *total)
{
    const char *separator = "";
    for (size_t i = 0; i < LAB_SIZE_BUCKETS; i++) {
        if (total->sizes[i] > 0) {
            printf(
                "%s{\"up_to\":%llu,\"count\":%llu}", separator,
                (unsigned long long)(UINT64_C(1) << i), (unsigned long long)total->sizes[i]);
            separator = ",";
        }
    }
}

int lab_report(void)
{
    const struct lab_recorder *total = &lab_outcome.total;
    if (total->latency) {
        lab_latency_figures(total);
    }
    printf("{\"workload\":\"%s\",\"config\":{", lab_program.workload);
    write_config(lab_program.flags, lab_program.flag_count, "");
    write_config(lab_common_flags, lab_common_flag_count, lab_program.flag_count ? "," : "");
    printf(
        "},\"operations\":%llu,\"seconds\":%.9f,\"checksum\":\"%016llx\",\"sizes\":[",
        (unsigned long long)total->operations, (double)lab_outcome.measured_ns / 1e9,
        (unsigned long long)total->checksum);
    write_sizes(total);
    printf("],\"latency_ns\":");
    lab_latency_write(stdout, total->latency);
    printf(",\"figures\":{");
    for (size_t i = 0; i < figures.count; i++) {
        printf("%s\"%s\":%.10g", i ? "," : "", figures.table[i].name, figures.table[i].value);
    }
    printf("}}\n");
    if (fflush(stdout) != 0 || ferror(stdout)) {
        lab_fail("cannot write the report");
    }
    return 0;
}
