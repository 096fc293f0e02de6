/* The driver without an engine: runs a target on files, then on random variants of them.
 *
 *     fuzz_replay_<target> [--seconds N] [--seed N] [--explain] FILE-OR-DIRECTORY...
 *
 * What makes the target abort, crash or hang is named on stderr, and a variant is written to
 * finding-<target process id> first, so that it can be run again. */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "random.h"

enum { LENGTH_MAX = 8192, FILES_MAX = 4096, INPUT_SECONDS_MAX = 120, CHANGES_MAX = 6 };

struct file {
    char *path;
    uint8_t *bytes;
    size_t length;
};

static struct file files[FILES_MAX];
static size_t file_count;

/* What runs now, for the handler of signals. */
static const char *running = "nothing";
static const uint8_t *running_bytes; /* NULL: `running` is the path of a file */
static size_t running_length;

static _Noreturn void give_up(const char *what, const char *path)
{
    fprintf(stderr, "replay: %s %s: %s\n", what, path, strerror(errno));
    exit(2);
}

/* ---- Findings -------------------------------------------------------------------------------- */

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static void on_signal(int number)
{
    static char name[64];

    signal(number, SIG_DFL);
    if (running_bytes) {
        int fd;

        snprintf(name, sizeof name, "finding-%d", (int)getpid());
        fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (fd >= 0 && write(fd, running_bytes, running_length) == (ssize_t)running_length)
            running = name;
    }
    say(number == SIGALRM ? "replay: FAILED: does not end: " : "replay: FAILED: ");
    say(running);
    say("\nTo see it again, give this file to the same program, with --explain.\n");
    raise(number == SIGALRM ? SIGABRT : number);
}

static void watch_signals(void)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGALRM};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        signal(numbers[i], on_signal);
}

static void run(const uint8_t *bytes, size_t length)
{
    /* Of its exact size, so that a sanitizer sees a read behind it. */
    uint8_t *copy = malloc(length ? length : 1);

    if (!copy)
        give_up("no memory for", running);
    memcpy(copy, bytes, length);
    alarm(INPUT_SECONDS_MAX);
    LLVMFuzzerTestOneInput(copy, length);
    alarm(0);
    free(copy);
}

/* ---- Files ----------------------------------------------------------------------------------- */

static void add_file(const char *path, size_t length)
{
    struct file *file = &files[file_count++];
    FILE *stream = fopen(path, "rb");

    if (file_count == FILES_MAX || !stream)
        give_up("cannot read", path);
    file->path = strdup(path);
    file->bytes = malloc(length + 1);
    if (!file->path || !file->bytes)
        give_up("no memory for", path);
    file->length = fread(file->bytes, 1, length, stream);
    fclose(stream);
}

static void add_directory(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);

    if (count < 0)
        give_up("cannot read", path);
    for (int i = 0; i < count; i++) {
        char inner[4096];
        struct stat status;

        snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (stat(inner, &status) == 0 && S_ISREG(status.st_mode) && entries[i]->d_name[0] != '.')
            add_file(inner, (size_t)status.st_size);
        free(entries[i]);
    }
    free(entries);
}

static void add_path(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0)
        give_up("cannot read", path);
    if (S_ISDIR(status.st_mode))
        add_directory(path);
    else
        add_file(path, (size_t)status.st_size);
}

/* ---- Variants -------------------------------------------------------------------------------- */

static size_t below(uint64_t *state, size_t bound)
{
    return bound ? random_next(state) % bound : 0;
}

/* Puts a piece of another file in, over what is there or between it. */
static size_t put_piece(uint8_t *bytes, size_t length, uint64_t *state)
{
    const struct file *other = &files[below(state, file_count)];
    size_t from = below(state, other->length), count = below(state, other->length - from + 1);
    size_t at = below(state, length + 1);
    bool over = random_next(state) >> 63;

    /* Whole records of the target `heap` stay whole. */
    from &= ~(size_t)3;
    at &= ~(size_t)3;
    if (count > LENGTH_MAX - length)
        count = LENGTH_MAX - length;
    if (!over)
        memmove(bytes + at + count, bytes + at, length - at);
    memcpy(bytes + at, other->bytes + from, count);
    return over ? (at + count > length ? at + count : length) : length + count;
}

static size_t cut(uint8_t *bytes, size_t length, uint64_t *state)
{
    size_t at = below(state, length) & ~(size_t)3;
    size_t count = below(state, length - at + 1) & ~(size_t)3;

    memmove(bytes + at, bytes + at + count, length - at - count);
    return length - count;
}

static size_t change(uint8_t *bytes, size_t length, uint64_t *state)
{
    switch (random_next(state) >> 61) {
    case 0:
    case 1:
        return put_piece(bytes, length, state);
    case 2:
        return cut(bytes, length, state);
    case 3:
        if (length)
            bytes[below(state, length)] ^= (uint8_t)(1u << (random_next(state) >> 61));
        return length;
    default:
        if (length)
            bytes[below(state, length)] = (uint8_t)(random_next(state) >> 56);
        return length;
    }
}

static uint64_t run_variants(uint64_t seed, unsigned seconds)
{
    static uint8_t bytes[LENGTH_MAX];
    uint64_t state = random_seeded(seed), count = 0;
    time_t end = time(NULL) + seconds;

    running_bytes = bytes;
    for (; time(NULL) < end; count++) {
        const struct file *file = &files[below(&state, file_count)];
        size_t length = file->length < LENGTH_MAX ? file->length : LENGTH_MAX;

        memcpy(bytes, file->bytes, length);
        for (size_t changes = 1 + below(&state, CHANGES_MAX); changes > 0; changes--)
            length = change(bytes, length, &state);
        running_length = length;
        run(bytes, length);
    }
    return count;
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)time(NULL), variants;
    unsigned seconds = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--explain") == 0)
            fuzz_explain = true;
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else
            add_path(argv[i]);
    }
    if (file_count == 0) {
        fputs("replay: no input was given, or the directories are empty\n", stderr);
        return 2;
    }
    LLVMFuzzerInitialize(&argc, &argv);
    watch_signals();
    for (size_t i = 0; i < file_count; i++) {
        running = files[i].path;
        run(files[i].bytes, files[i].length);
    }
    variants = run_variants(seed, seconds);
    printf(
        "%zu files, %llu variants with seed %llu: no finding\n", file_count,
        (unsigned long long)variants, (unsigned long long)seed);
    return 0;
}
