/* The command line of the stress. */
#include "stress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: stress [options]\n"
    "Calls the allocation API at random from many threads and checks every block against a model.\n"
    "  --operations N       operations of one seed, all threads together (4000000)\n"
    "  --seeds N            number of seeds to run (1)\n"
    "  --first-seed S       the first of them (1)\n"
    "  --threads LIST       numbers of threads, the operations are shared out (1,2,8,64)\n"
    "  --max-live-bytes N   limit of requested bytes that are live, k, M or G after it (256M)\n"
    "  --purge-every N      operations of a thread between purges, at least 4096; 0: none "
    "(131072)\n"
    "  --reserve-addresses  reserve all addresses near the first blocks (256 GiB)\n"
    "  --json               print the result as one JSON object\n"
    "  --progress           show progress on standard error even if that is no terminal\n"
    "  --self-test          plant faults into the allocator and see whether they are found\n"
    "  --help               this text\n"
    "Exit status: 0 clean, 1 a failure was found, 2 wrong usage; a corrupted block aborts.\n";

/* Reads a decimal number that fills the text up to an optional unit; false when it does not. */
static bool parse_number(const char *text, bool with_unit, uint64_t *value)
{
    char *end;
    unsigned shift = 0;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    if (with_unit && *end != '\0') {
        shift = *end == 'k' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
        end += shift != 0;
    }
    if (*end != '\0' || *value > UINT64_MAX >> shift)
        return false;
    *value <<= shift;
    return true;
}

static bool read_number(
    const char *name, const char *text, bool with_unit, uint64_t least, uint64_t most,
    uint64_t *value)
{
    if (parse_number(text, with_unit, value) && *value >= least && *value <= most)
        return true;
    fprintf(
        stderr, "stress: %s: '%s' is not a number from %llu to %llu\n", name, text,
        (unsigned long long)least, (unsigned long long)most);
    return false;
}

static bool read_threads(const char *text, struct options *options)
{
    char item[16];

    options->configurations = 0;
    for (;;) {
        size_t length = strcspn(text, ",");
        uint64_t value;

        if (options->configurations == CONFIGURATIONS_MAX) {
            fprintf(stderr, "stress: --threads: more than %d numbers\n", CONFIGURATIONS_MAX);
            return false;
        }
        snprintf(item, sizeof(item), "%.*s", length < 15 ? (int)length : 15, text);
        if (!read_number("--threads", item, false, 1, THREADS_MAX, &value))
            return false;
        options->threads[options->configurations++] = (unsigned)value;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
}

static void set_defaults(struct options *options)
{
    *options = (struct options){
        .operations = 4000000,
        .first_seed = 1,
        .seeds = 1,
        .threads = {1, 2, 8, 64},
        .configurations = 4,
        .live_bytes_max = 256 << 20,
        .purge_every = 1 << 17,
        .progress = isatty(STDERR_FILENO) == 1,
    };
}

/* An option that takes a value. */
static bool read_option(struct options *options, const char *name, const char *text)
{
    uint64_t tera = (uint64_t)1 << 40;

    if (strcmp(name, "--operations") == 0)
        return read_number(name, text, false, 1, tera, &options->operations);
    if (strcmp(name, "--seeds") == 0)
        return read_number(name, text, false, 1, 1000000, &options->seeds);
    if (strcmp(name, "--first-seed") == 0)
        return read_number(name, text, false, 0, UINT64_MAX >> 1, &options->first_seed);
    if (strcmp(name, "--threads") == 0)
        return read_threads(text, options);
    if (strcmp(name, "--max-live-bytes") == 0)
        return read_number(name, text, true, 1 << 20, tera, &options->live_bytes_max);
    if (!read_number(name, text, false, 0, tera, &options->purge_every))
        return false;
    if (options->purge_every == 0 || options->purge_every >= 4096)
        return true;
    fprintf(stderr, "stress: --purge-every: %s is neither 0 nor at least 4096\n", text);
    return false;
}

static bool takes_value(const char *name)
{
    static const char *const names[] = {"--operations", "--seeds",          "--first-seed",
                                        "--threads",    "--max-live-bytes", "--purge-every"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* An option without a value; false when there is none of that name. */
static bool read_flag(struct options *options, const char *name)
{
    if (strcmp(name, "--json") == 0)
        options->json = true;
    else if (strcmp(name, "--reserve-addresses") == 0)
        options->reserve_addresses = true;
    else if (strcmp(name, "--progress") == 0)
        options->progress = true;
    else if (strcmp(name, "--self-test") == 0)
        options->self_test = true;
    else
        return false;
    return true;
}

bool options_parse(struct options *options, int argc, char **argv, int *status)
{
    set_defaults(options);
    *status = 2;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];

        if (strcmp(name, "--help") == 0) {
            fputs(usage, stdout);
            *status = 0;
            return false;
        }
        if (read_flag(options, name))
            continue;
        if (!takes_value(name)) {
            fprintf(stderr, "stress: unknown option '%s', see --help\n", name);
            return false;
        }
        if (++i == argc) {
            fprintf(stderr, "stress: %s needs a value\n", name);
            return false;
        }
        if (!read_option(options, name, argv[i]))
            return false;
    }
    for (unsigned i = 0; i < options->configurations; i++) {
        if (options->operations / options->configurations >= options->threads[i])
            continue;
        fprintf(
            stderr, "stress: --operations: too few for %u configurations with up to %u threads\n",
            options->configurations, options->threads[i]);
        return false;
    }
    return true;
}
