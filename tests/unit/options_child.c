/* Shows what the library made of its environment: every option, then a few calls and what was
 * counted of them, one "name value" a line. api_options_test.py sets the environment and reads.
 *
 *     options_child get          options and counts
 *     options_child set N V      hakmem_option_set(N, V): its result, and the value afterwards
 *     options_child overwrite    writes over its environment
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (argc == 2 && strcmp(argv[1], "overwrite") == 0)
        return overwrite_environment();
    return 2;
}
