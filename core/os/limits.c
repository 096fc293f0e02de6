/* See limits.h. */
#include "os/limits.h"

#include <string.h>

#include "base/text.h"
#include "os/os.h"

/* Version 1 shows this, rounded down to pages, if there is no limit. */
static const size_t no_limit = (size_t)1 << 60;

/* Short, since all of this is on the stack of the caller of malloc, perhaps a coroutine: if the
 * path of a group is longer, only the groups around it are read. */
enum { LIST_BYTES = 768, PATH_BYTES = 768, VALUE_BYTES = 128 };

/* A control group: prefix for tests, mount point of its controller, path as /proc/self/cgroup gives
 * it. */
struct group {
    const char *root, *mount, *path;
    size_t length;
};

/* The number at `*text`, which moves on behind it and a blank. "max" and -1 are SIZE_MAX. */
static size_t next_number(const char **text)
{
    const char *at = *text;
    size_t number = 0;
    bool any = false;
    for (; *at >= '0' && *at <= '9'; at++, any = true)
        number = number < no_limit ? number * 10 + (size_t)(*at - '0') : number;
    while (*at && *at != ' ' && *at != '\n')
        at++;
    *text = *at == ' ' ? at + 1 : at;
    return any && number < no_limit ? number : SIZE_MAX;
}

/* Reads text from a file, over its path in the buffer, with as few system calls as possible, since
 * each process does so at its start. Returns its length. */
static size_t read_text(char *buffer, size_t from, size_t capacity)
{
    size_t length = os_read_piece(buffer, from, buffer, capacity - 1);
    buffer[length] = '\0';
    return length;
}

/* The first two numbers in a file of the group. */
static void read_numbers(const struct group *group, const char *file, size_t numbers[2])
{
    char path[PATH_BYTES];
    const char *at = path;
    struct text text;
    text_init(&text, path, sizeof path);
    text_string(&text, group->root);
    text_string(&text, group->mount);
    text_foreign(&text, group->path, group->length);
    text_string(&text, file);
    text_terminate(&text);
    numbers[0] = numbers[1] = SIZE_MAX;
    if (text.length < sizeof path && read_text(path, 0, VALUE_BYTES)) {
        numbers[0] = next_number(&at);
        numbers[1] = next_number(&at);
    }
}

static size_t read_number(const struct group *group, const char *file)
{
    size_t numbers[2];
    read_numbers(group, file, numbers);
    return numbers[0] ? numbers[0] : SIZE_MAX; /* a limit of zero is ignored */
}

static void least_cpus(struct os_limits *limits, size_t quota, size_t period)
{
    if (quota != SIZE_MAX && quota && period != SIZE_MAX && period)
        limits->cpus = size_min(limits->cpus, (quota + period - 1) / period);
}

static void read_version_2(const struct group *group, struct os_limits *limits)
{
    size_t quota[2];
    limits->group_bytes = size_min(limits->group_bytes, read_number(group, "/memory.max"));
    limits->group_bytes = size_min(limits->group_bytes, read_number(group, "/memory.high"));
    read_numbers(group, "/cpu.max", quota);
    least_cpus(limits, quota[0], quota[1]);
}

static void read_memory_1(const struct group *group, struct os_limits *limits)
{
    limits->group_bytes =
        size_min(limits->group_bytes, read_number(group, "/memory.limit_in_bytes"));
}

static void read_cpu_1(const struct group *group, struct os_limits *limits)
{
    size_t quota = read_number(group, "/cpu.cfs_quota_us");
    if (quota != SIZE_MAX)
        least_cpus(limits, quota, read_number(group, "/cpu.cfs_period_us"));
}

/* Reads the group and all around it. In a container the path may be the outside one, while the
 * mounted directory is the group itself: then only the last step finds files. */
static void read_upwards(
    struct group group, struct os_limits *limits,
    void (*read)(const struct group *, struct os_limits *))
{
    for (;;) {
        while (group.length && group.path[group.length - 1] == '/')
            group.length--;
        read(&group, limits);
        if (!group.length)
            return;
        while (group.length && group.path[group.length - 1] != '/')
            group.length--;
    }
}

/* Whether a list separated by commas has the word. */
static bool lists(const char *list, size_t length, const char *word)
{
    size_t word_length = strlen(word);
    for (const char *at = list, *end = list + length; at < end;) {
        size_t here = size_min(strcspn(at, ","), (size_t)(end - at));
        if (here == word_length && memcmp(at, word, here) == 0)
            return true;
        at += here + 1;
    }
    return false;
}

/* A line such as "4:cpu,cpuacct:/path"; the line of version 2 has no names, and is the last. A
 * controller has one version: `seen` counts those of ours under version 1. */
static void read_group_line(
    const char *root, const char *line, size_t length, struct os_limits *limits, unsigned *seen)
{
    const char *names = memchr(line, ':', length);
    const char *path = names ? memchr(names + 1, ':', length - (size_t)(names + 1 - line)) : NULL;
    if (!path)
        return;
    size_t names_length = (size_t)(path - ++names);
    path++;
    struct group group = {root, "/sys/fs/cgroup", path, length - (size_t)(path - line)};
    bool memory = lists(names, names_length, "memory"), cpu = lists(names, names_length, "cpu");
    if (!names_length && *seen < 2)
        read_upwards(group, limits, read_version_2);
    group.mount = "/sys/fs/cgroup/memory";
    if (memory)
        read_upwards(group, limits, read_memory_1);
    group.mount = "/sys/fs/cgroup/cpu";
    if (cpu)
        read_upwards(group, limits, read_cpu_1);
    *seen += (unsigned)memory + cpu;
}

static void path_below(const char *root, const char *path, char *buffer, size_t capacity)
{
    struct text text;
    text_init(&text, buffer, capacity);
    text_string(&text, root);
    text_string(&text, path);
    text_terminate(&text);
}

/* Reads the whole lines of the text, or all of it if it is `last`; returns their length. */
static size_t read_lines(
    const char *root, const char *text, bool last, struct os_limits *limits, unsigned *seen)
{
    const char *line = text;
    for (;;) {
        size_t length = strcspn(line, "\n");
        if (!line[length] && !last)
            return (size_t)(line - text);
        read_group_line(root, line, length, limits, seen);
        if (!line[length])
            return (size_t)(line - text) + length;
        line += length + 1;
    }
}

void os_limits_read(const char *root, struct os_limits *limits)
{
    char list[LIST_BYTES];
    unsigned seen = 0;
    size_t from = 0, length, read;
    size_t addresses = size_min(os_address_space_limit(), os_data_limit());
    *limits = (struct os_limits){SIZE_MAX, addresses, SIZE_MAX};
    do {
        path_below(root, "/proc/self/cgroup", list, sizeof list);
        length = read_text(list, from, sizeof list);
        read = read_lines(root, list, length < sizeof list - 1, limits, &seen);
        from += read ? read : length;
    } while (length == sizeof list - 1);
}

struct os_footprint os_footprint_read(const char *root)
{
    char value[VALUE_BYTES];
    const char *at = value;
    path_below(root, "/proc/self/statm", value, sizeof value);
    if (!read_text(value, 0, sizeof value))
        return (struct os_footprint){0, 0};
    size_t pages = next_number(&at), resident = next_number(&at), page = os_page_size();
    if (pages == SIZE_MAX || resident == SIZE_MAX)
        return (struct os_footprint){0, 0};
    return (struct os_footprint){resident * page, pages * page};
}
