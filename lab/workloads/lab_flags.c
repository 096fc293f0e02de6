/* The command line: parsing, the errors of users, and --help. */
#include "lab_internal.h"
#include <ctype.h>
#include <stdarg.h>

static const char *const clocks[] = {"none", "wall", "processor", NULL};

const struct lab_flag lab_common_flags[] = {
    {.name = "seed",
     .kind = LAB_COUNT,
     .variable = &lab_program.seed,
     .standard = 1,
     .most = UINT32_MAX,
     .help = "start of all random sequences"},
    {.name = "latency",
     .kind = LAB_CHOICE,
     .variable = &lab_program.latency,
     .standard = LAB_UNTIMED,
     .choices = clocks,
     .help = "the clock by which every call is timed, for percentiles; the run itself gets slower"},
};
const size_t lab_common_flag_count = LAB_LENGTH(lab_common_flags);

void lab_reject(const char *flag, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s: --%s ", lab_program.workload, flag);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(2);
}

void lab_require_operations(uint64_t operations, uint64_t least, const char *to)
{
    if (operations < least) {
        lab_reject(
            "operations", "%llu: must be at least %llu, %s", (unsigned long long)operations,
            (unsigned long long)least, to);
    }
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Parses digits with an optional suffix of K, M or G. False: no such number, or above 2^64 - 1. */
static bool parse_number(const char *text, uint64_t thousand, uint64_t *number)
{
    static const char suffixes[] = "KMG";
    uint64_t value = 0;
    const char *at = text;
    for (; isdigit((unsigned char)*at); at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value)) {
            return false;
        }
    }
    if (at == text) {
        return false;
    }
    const char *suffix = *at ? strchr(suffixes, toupper((unsigned char)*at)) : NULL;
    if (suffix) {
        for (ptrdiff_t power = 0; power <= suffix - suffixes; power++) {
            if (__builtin_mul_overflow(value, thousand, &value)) {
                return false;
            }
        }
        at++;
    }
    *number = value;
    return *at == '\0';
}

/* Writes a size as its user would: with the largest suffix that leaves a whole number. */
static const char *size_text(uint64_t bytes, char text[24])
{
    static const char suffixes[] = " KMG";
    size_t power = 0;
    while (power < 3 && bytes >= 1024 && bytes % 1024 == 0) {
        bytes /= 1024;
        power++;
    }
    snprintf(text, 24, "%llu%.*s", (unsigned long long)bytes, power > 0, &suffixes[power]);
    return text;
}

/* Writes the range of a flag, e.g. "8 to 1G bytes", "1 to 64 threads" or "lifo, fifo or all". */
static void write_range(FILE *out, const struct lab_flag *flag)
{
    if (flag->kind == LAB_CHOICE) {
        for (size_t i = 0; flag->choices[i]; i++) {
            const char *separator = i == 0 ? "" : flag->choices[i + 1] ? ", " : " or ";
            fprintf(out, "%s%s", separator, flag->choices[i]);
        }
    } else if (flag->kind == LAB_BYTES) {
        char least[24], most[24];
        fprintf(out, "%s to %s bytes", size_text(flag->least, least), size_text(flag->most, most));
    } else {
        fprintf(
            out, "%llu to %llu%s%s", (unsigned long long)flag->least,
            (unsigned long long)flag->most, flag->unit ? " " : "", flag->unit ? flag->unit : "");
    }
}

__attribute__((noreturn)) static void reject_value(const struct lab_flag *flag, const char *value)
{
    fprintf(stderr, "%s: --%s %s: must be ", lab_program.workload, flag->name, value);
    write_range(stderr, flag);
    fputc('\n', stderr);
    exit(2);
}

static void set_value(const struct lab_flag *flag, const char *value)
{
    if (flag->kind == LAB_CHOICE) {
        uint64_t choice = 0;
        while (flag->choices[choice] && strcmp(flag->choices[choice], value) != 0) {
            choice++;
        }
        if (!flag->choices[choice]) {
            reject_value(flag, value);
        }
        *flag->variable = choice;
        return;
    }
    uint64_t number;
    if (!parse_number(value, flag->kind == LAB_BYTES ? 1024 : 1000, &number) ||
        number < flag->least || number > flag->most) {
        reject_value(flag, value);
    }
    *flag->variable = number;
}

/* ---- The table ------------------------------------------------------------------------------- */

static const struct lab_flag *find_in(
    const struct lab_flag *flags, size_t flag_count, const char *name)
{
    for (size_t i = 0; i < flag_count; i++) {
        if (strcmp(flags[i].name, name) == 0) {
            return &flags[i];
        }
    }
    return NULL;
}

static const struct lab_flag *find_flag(const char *name)
{
    const struct lab_flag *flag = find_in(lab_program.flags, lab_program.flag_count, name);
    return flag ? flag : find_in(lab_common_flags, lab_common_flag_count, name);
}

static void help_row(const struct lab_flag *flag)
{
    char standard[24];
    printf(
        "  --%s %s\n        %s\n        ", flag->name, flag->kind == LAB_CHOICE ? "WORD" : "N",
        flag->help);
    write_range(stdout, flag);
    if (flag->kind == LAB_CHOICE) {
        printf("; default %s\n", flag->choices[flag->standard]);
    } else if (flag->kind == LAB_BYTES) {
        printf("; default %s\n", size_text(flag->standard, standard));
    } else {
        printf("; default %llu\n", (unsigned long long)flag->standard);
    }
}

__attribute__((noreturn)) static void help(const char *summary)
{
    printf(
        "%s: %s\n\nusage: %s [--FLAG VALUE]...\n\n", lab_program.workload, summary,
        lab_program.workload);
    for (size_t i = 0; i < lab_program.flag_count; i++) {
        help_row(&lab_program.flags[i]);
    }
    for (size_t i = 0; i < lab_common_flag_count; i++) {
        help_row(&lab_common_flags[i]);
    }
    printf("  --help\n        show this text\n\n"
           "Sizes accept the suffixes K, M and G for powers of 1024, counts for powers of 1000.\n"
           "The last occurrence of a flag wins. The result is one JSON object on stdout.\n");
    exit(fflush(stdout) == 0 ? 0 : 1);
}

/* Checks the one pair of flags that several workloads have. */
static void check_sizes(void)
{
    const struct lab_flag *least = find_flag("size-min");
    const struct lab_flag *most = find_flag("size-max");
    if (least && most && *least->variable > *most->variable) {
        char least_text[24], most_text[24];
        lab_reject(
            "size-min", "%s: must not be above --size-max %s",
            size_text(*least->variable, least_text), size_text(*most->variable, most_text));
    }
}

void lab_begin(
    const char *workload, const char *summary, const struct lab_flag *flags, size_t flag_count,
    int argc, char **argv)
{
    lab_program.workload = workload;
    lab_program.flags = flags;
    lab_program.flag_count = flag_count;
    for (size_t i = 0; i < flag_count; i++) {
        *flags[i].variable = flags[i].standard;
    }
    for (size_t i = 0; i < lab_common_flag_count; i++) {
        *lab_common_flags[i].variable = lab_common_flags[i].standard;
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            help(summary);
        }
        const struct lab_flag *flag =
            strncmp(argv[i], "--", 2) == 0 ? find_flag(argv[i] + 2) : NULL;
        if (!flag) {
            fprintf(stderr, "%s: %s: no such flag; --help lists the flags\n", workload, argv[i]);
            exit(2);
        }
        if (i + 1 < argc) {
            set_value(flag, argv[++i]);
        } else {
            lab_reject(flag->name, "needs a value; --help lists the flags");
        }
    }
    check_sizes();
    if (lab_program.latency) {
        lab_latency_begin();
    }
    lab_recorder_open(&lab_outcome.total);
}
