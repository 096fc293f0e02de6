/* Shows what the library made of its environment: every option, then a few calls and what was
 * counted of them, one "name value" a line. api_options_test.py sets the environment and reads.
 *
 *     options_child get          options and counts
 *     options_child set N V      hakmem_option_set(N, V): its result, and the value afterwards
 *     options_child change N V   what option N has an effect on, before and after it is set to V
 *     options_child overwrite    writes over its environment
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hakmem/hakmem.h>

static const char *const names[] = {"preset",         "fallback",      "stats",
                                    "magazine_kib",   "big_cache_mib", "retain_percent",
                                    "purge_delay_ms", "huge_pages",    "shards"};

/* Every form of call in every tier; true when all went well. */
static int use_heap(void)
{
    static const size_t sizes[] = {1, 100, 1024, 5000, 100000, 3000000};
    int good = 1;
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            char *first = malloc(sizes[i]), *second = calloc(1, sizes[i]);
            void *third = NULL;
            good = good && first && second && second[sizes[i] - 1] == 0;
            good = good && posix_memalign(&third, 256, sizes[i]) == 0;
            first[0] = 5;
            char *moved = realloc(first, sizes[i] * 2);
            good = good && moved && moved[0] == 5;
            good = good && hakmem_usable_size(moved) >= sizes[i] * 2;
            free(moved);
            free(second);
            free(third);
        }
    }
    return good;
}

static int show(void)
{
    long value;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (hakmem_option_get(names[i], &value) != 0)
            return 1;
        printf("%s %ld\n", names[i], value);
    }
    struct hakmem_stats before, after;
    hakmem_get_stats(&before, sizeof before);
    int good = use_heap();
    hakmem_get_stats(&after, sizeof after);
    printf("good %d\n", good);
    printf("malloc_calls %llu\n", (unsigned long long)(after.malloc_calls - before.malloc_calls));
    printf("libc_calls %llu\n", (unsigned long long)(after.libc_calls - before.libc_calls));
    return 0;
}

static const char *error_name(int error)
{
    return error == 0        ? "0"
           : error == ENOENT ? "ENOENT"
           : error == ERANGE ? "ERANGE"
           : error == EPERM  ? "EPERM"
                             : "unexpected";
}

static int set(const char *name, long new_value)
{
    long value = -1;
    errno = 77;
    printf("set %s\n", error_name(hakmem_option_set(name, new_value)));
    printf("get %s\n", error_name(hakmem_option_get(name, &value)));
    printf("value %ld\nerrno %d\n", value, errno);
    return 0;
}

static struct hakmem_stats stats_now(void)
{
    struct hakmem_stats stats;
    hakmem_get_stats(&stats, sizeof stats);
    return stats;
}

/* Free blocks that a burst of short ones leaves behind. Magazines shrink by and by, in slow paths,
 * of which each big block is one. */
static uint64_t cached_after_bursts(void)
{
    enum { ROUNDS = 4000, BLOCKS = 2000 };
    static void *blocks[BLOCKS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCKS; i++)
            blocks[i] = malloc(64);
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
        free(malloc((size_t)3 << 20));
    }
    struct hakmem_usage usage;
    hakmem_get_class(3, &usage, sizeof usage);
    return usage.cached_blocks;
}

/* Bytes that a big block leaves behind. */
static uint64_t retained_after_big_block(void)
{
    size_t size = (size_t)20 << 20;
    free(memset(malloc(size), 1, size));
    return stats_now().retained_bytes;
}

/* Calls of small sizes in turns. */
static void call_in_turns(int rounds, unsigned pause_us)
{
    for (int i = 0; i < rounds * 15; i++) {
        free(malloc((size_t)1 << i % 15));
        if (pause_us)
            usleep(pause_us);
    }
}

/* Bytes that blocks of pages leave behind, a while after they were freed. The calls in between take
 * no fresh pages, since free pages would go for these whatever the options say. */
static uint64_t retained_after_pause(void)
{
    enum { BLOCKS = 200, SIZE = 100000 };
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = memset(malloc(SIZE), 1, SIZE);
    call_in_turns(2, 0);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    call_in_turns(27, 1000);
    return stats_now().retained_bytes;
}

static uint64_t limit(void)
{
    return stats_now().memory_limit_bytes;
}

static uint64_t has_profile(void)
{
    use_heap();
    return hakmem_profile_write("/dev/null") == 0;
}

static int change(const char *name, long value)
{
    static const struct {
        const char *option;
        uint64_t (*effect)(void);
    } effects[] = {
        {"magazine_kib", cached_after_bursts},
        {"big_cache_mib", retained_after_big_block},
        {"retain_percent", retained_after_pause},
        {"purge_delay_ms", retained_after_pause},
        {"limit_mib", limit},
        {"sample_kib", has_profile},
    };
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) {
        if (strcmp(effects[i].option, name) != 0)
            continue;
        printf("before %llu\n", (unsigned long long)effects[i].effect());
        printf("set %s\n", error_name(hakmem_option_set(name, value)));
        printf("after %llu\n", (unsigned long long)effects[i].effect());
    }
    return 0;
}

/* As programs do that set the title that ps shows. */
static int overwrite_environment(void)
{
    extern char **environ;
    for (char **entry = environ; *entry; entry++)
        memset(*entry, 0, strlen(*entry));
    return use_heap() ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (strcmp(hakmem_version(), HAKMEM_VERSION) != 0)
        return 1;
    if (argc == 2 && strcmp(argv[1], "get") == 0)
        return show();
    if (argc == 4 && strcmp(argv[1], "set") == 0)
        return set(argv[2], strtol(argv[3], NULL, 10));
    if (argc == 4 && strcmp(argv[1], "change") == 0)
        return change(argv[2], strtol(argv[3], NULL, 10));
    if (argc == 2 && strcmp(argv[1], "overwrite") == 0)
        return overwrite_environment();
    return 2;
}
