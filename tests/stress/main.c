/* Entry of the stress: seeds times configurations, and the harness's own memory. */
#include "stress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *harness_map(size_t bytes)
{
    static const char message[] = "stress: no memory for the harness itself\n";
    void *memory = mmap(
        NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED) {
        (void)!write(STDERR_FILENO, message, sizeof(message) - 1);
        _exit(2);
    }
    return memory;
}

void harness_unmap(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

/* After the allocator's first call, so that its heap has to grow far from where it began. In ever
 * smaller pieces, which fill the gaps between other mappings. */
static void reserve_addresses(const struct entries *entries)
{
    enum { SKIPPED = 77 };
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

    entries->free(entries->malloc(100));
    for (size_t bytes = (size_t)256 << 30; bytes >= (size_t)4 << 20; bytes /= 2) {
        if (mmap(NULL, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED) {
            fputs("skipped: --reserve-addresses: the system does not allow it\n", stderr);
            exit(SKIPPED);
        }
    }
}

int main(int argc, char **argv)
{
    static char output[16384]; /* standard output must not allocate while accounts are kept */
    static struct totals totals[CONFIGURATIONS_MAX];
    const struct entries *entries;
    struct options options;
    bool clean = true;
    int status;

    setvbuf(stdout, output, _IOFBF, sizeof(output));
    if (!options_parse(&options, argc, argv, &status))
        return status;
    if (strcmp(hakmem_version(), HAKMEM_VERSION) != 0) {
        fprintf(stderr, "stress: library %s, header %s\n", hakmem_version(), HAKMEM_VERSION);
        return 2;
    }
    if (options.self_test)
        return self_test() == 0 ? 0 : 1;
    entries = entries_of_library();
    if (options.reserve_addresses)
        reserve_addresses(entries);
    report_watch_signals();
    for (uint64_t i = 0; i < options.seeds; i++)
        for (unsigned configuration = 0; configuration < options.configurations; configuration++)
            clean = crew_run(
                        &options, entries, options.first_seed + i, configuration,
                        &totals[configuration]) &&
                    clean;
    if (options.json)
        report_results_json(&options, totals, clean);
    else
        report_results_text(&options, totals, clean);
    return clean ? 0 : 1;
}
