/* Functions that write to memory, in the hardened library: what does not fit the block ends the
 * program at the call, with one line, whatever the block's size, though nobody frees it; what fits,
 * is of no length, or goes to memory that is no block, is written as the C library would.
 *
 * Each mistake is made in a child. The program is linked with a library that copies before main and
 * has a memmove of its own (copies_lib.c).
 *
 * usage: hardened_copies
 */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

enum { LONGEST = 400000 };

static char source[LONGEST + 1]; /* letters, and a zero at the end */
static wchar_t wide_source[LONGEST + 1];
static int failures;

/* ---- Functions -------------------------------------------------------------------------------
 *
 * Each writes `size` bytes, or characters, to `to`. Those of strings write a zero as the last one.
 */

#define COPY(name, ...)                                                                            \
    static void by_##name(void *to, size_t size)                                                   \
    {                                                                                              \
        (void)size;                                                                                \
        __VA_ARGS__;                                                                               \
    }

static void print_string(void *to, size_t size, ...)
{
    va_list arguments;
    va_start(arguments, size);
    if (size)
        vsnprintf(to, size, "%.*s", arguments);
    else
        vsprintf(to, "%.*s", arguments);
    va_end(arguments);
}

/* The last `size` characters of the source, with its zero. */
#define STRING(size) (source + LONGEST + 1 - (size))
#define WIDE_STRING(size) (wide_source + LONGEST + 1 - (size))

COPY(memcpy, memcpy(to, source, size))
COPY(memmove, memmove(to, source, size))
COPY(mempcpy, mempcpy(to, source, size))
COPY(memset, memset(to, 'a', size))
COPY(memccpy, memccpy(to, source, 'z', size))
COPY(bcopy, bcopy(source, to, size))
COPY(bzero, bzero(to, size))
COPY(explicit_bzero, explicit_bzero(to, size))
COPY(strcpy, strcpy(to, STRING(size)))
COPY(stpcpy, stpcpy(to, STRING(size)))
COPY(strncpy, strncpy(to, "a", size))
COPY(stpncpy, stpncpy(to, source, size))
COPY(strcat, *(char *)to = 0; strcat(to, STRING(size)))
COPY(strncat, *(char *)to = 0; strncat(to, source, size - 1))
COPY(sprintf, sprintf(to, "%s", STRING(size)))
COPY(snprintf, snprintf(to, size, "%.*s", (int)size, source))
COPY(vsprintf, print_string(to, 0, (int)size - 1, source))
COPY(vsnprintf, print_string(to, size, (int)size, source))
COPY(wmemcpy, wmemcpy(to, wide_source, size))
COPY(wmemmove, wmemmove(to, wide_source, size))
COPY(wmempcpy, wmempcpy(to, wide_source, size))
COPY(wmemset, wmemset(to, 'a', size))
COPY(wcscpy, wcscpy(to, WIDE_STRING(size)))
COPY(wcpcpy, wcpcpy(to, WIDE_STRING(size)))
COPY(wcsncpy, wcsncpy(to, L"a", size))
COPY(wcpncpy, wcpncpy(to, wide_source, size))
COPY(wcscat, *(wchar_t *)to = 0; wcscat(to, WIDE_STRING(size)))
COPY(wcsncat, *(wchar_t *)to = 0; wcsncat(to, wide_source, size - 1))

#define ROW(name, width, least)                                                                    \
    {                                                                                              \
#name, by_##name, width, least                                                             \
    }

static const struct function {
    const char *name;
    void (*write)(void *to, size_t size);
    size_t width;
    size_t least; /* how many characters it writes at least */
} functions[] = {
    ROW(memcpy, 1, 0),   ROW(memmove, 1, 0),  ROW(mempcpy, 1, 0),  ROW(memset, 1, 0),
    ROW(memccpy, 1, 0),  ROW(bcopy, 1, 0),    ROW(bzero, 1, 0),    ROW(explicit_bzero, 1, 0),
    ROW(strcpy, 1, 1),   ROW(stpcpy, 1, 1),   ROW(strncpy, 1, 0),  ROW(stpncpy, 1, 0),
    ROW(strcat, 1, 1),   ROW(strncat, 1, 1),  ROW(wmemcpy, 4, 0),  ROW(wmemmove, 4, 0),
    ROW(wmempcpy, 4, 0), ROW(wmemset, 4, 0),  ROW(wcscpy, 4, 1),   ROW(wcpcpy, 4, 1),
    ROW(wcsncpy, 4, 0),  ROW(wcpncpy, 4, 0),  ROW(wcscat, 4, 1),   ROW(wcsncat, 4, 1),
    ROW(sprintf, 1, 1),  ROW(snprintf, 1, 1), ROW(vsprintf, 1, 1), ROW(vsnprintf, 1, 1),
};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const size_t sizes[] = {4, 24, 1016, 5000, 50000, 131072};

/* ---- Children -------------------------------------------------------------------------------- */

struct act {
    const struct function *function;
    char *to;
    size_t size;
    char *freed; /* to be freed before, or NULL */
};

static void make(const struct act *act)
{
    free(act->freed);
    act->function->write(act->to, act->size);
}

static void *make_in_thread(void *act)
{
    make(act);
    return NULL;
}

/* What a child that does so says; it has to end by SIGABRT if it says anything. */
static void say_of(const struct act *act, bool thread, char *said, size_t room)
{
    int ends[2], status = 0;
    ssize_t got, length = 0;
    if (pipe(ends))
        exit(2);
    pid_t child = fork();
    if (!child) {
        pthread_t other;
        dup2(ends[1], STDERR_FILENO);
        if (!thread)
            make(act);
        else if (!pthread_create(&other, NULL, make_in_thread, (void *)act))
            pthread_join(other, NULL);
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], said + length, room - 1 - (size_t)length)) > 0)
        length += got;
    close(ends[0]);
    waitpid(child, &status, 0);
    said[length] = 0;
    bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    if (length ? !aborted : status != 0)
        snprintf(said, room, "status %#x, %zd bytes", status, length);
}

/* The child has to say that of that block. */
static void expect(const struct act *act, const char *mistake, const void *block)
{
    char said[4096], wanted[256];
    snprintf(
        wanted, sizeof wanted, "hakmem: %s(): %s %p", act->function->name, mistake, (void *)block);
    say_of(act, false, said, sizeof said);
    said[strcspn(said, "\n")] = 0;
    /* Those that read where a string ends have begun it by a plain store. */
    bool faulted = strstr(act->function->name, "cat") && strstr(said, "status 0xb");
    if (strcmp(said, wanted) != 0 && !faulted) {
        printf("FAILED: '%s' is '%s'\n", wanted, said);
        failures++;
    }
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void overflows(const struct function *function, size_t size)
{
    size_t width = function->width, fits = size / width;
    char *block = malloc(size);
    if (!fits)
        return;
    /* What fits passes, to the byte; one more does not, from any place. */
    function->write(block, fits);
    if (block[0] && function->write != by_memset && width == 1 && block[0] != 'a' && fits > 1) {
        printf("FAILED: %s wrote %d\n", function->name, block[0]);
        failures++;
    }
    if (size % width == 0) {
        function->write(block + size - width, 1);
        expect(
            &(struct act){function, block + size - width, 2, NULL}, "write beyond the end of",
            block);
        expect(&(struct act){function, block, fits + 1, NULL}, "write beyond the end of", block);
        if (!function->least)
            function->write(block + size, 0);
    }
    if (fits > 8)
        expect(
            &(struct act){function, block + size / 2 / width * width, fits, NULL},
            "write beyond the end of", block);
    expect(&(struct act){function, block, 1, block}, "write after free of", block);
    /* Where it begins with its page, another block or a closed page lies before it. */
    if (size > 32768 && (uintptr_t)block % 4096)
        expect(&(struct act){function, block - width, 1, NULL}, "write before the start of", block);
}

/* The byte before a short block is its neighbour's, or is in no block. */
static void underflows(const struct function *function, size_t size)
{
    char said[4096];
    char *block = malloc(size);
    struct act act = {function, block - 8, 16 / function->width, NULL};
    say_of(&act, false, said, sizeof said);
    bool may_fault = strstr(function->name, "cat") || (uintptr_t)block % 4096 == 0;
    bool faulted = may_fault && strstr(said, "status 0xb");
    if (!strstr(said, "(): write ") && !strstr(said, "(): stray write ") && !faulted) {
        printf("FAILED: %s before a block of %zu bytes: %s\n", function->name, size, said);
        failures++;
    }
}

static void big_blocks(const struct function *function)
{
    char *block = malloc(((size_t)3 << 20) - 100);
    expect(&(struct act){function, block - 4, 1, NULL}, "write before the start of", block);
    char *longer = malloc(((size_t)2 << 20) + 1);
    struct act act = {function, longer, LONGEST, NULL};
    function->write(longer, LONGEST);
    char said[4096];
    say_of(&act, true, said, sizeof said);
    if (said[0]) {
        printf("FAILED: %s in a thread: %s\n", function->name, said);
        failures++;
    }
}

/* ---- No mistakes ----------------------------------------------------------------------------- */

static char variable[LONGEST * sizeof(wchar_t)];

/* To memory that is no block, beside big blocks too. */
static void elsewhere(const struct function *function)
{
    char local[64] __attribute__((aligned(16)));
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)16 << 20;
    function->write(local, sizeof local / function->width);
    function->write(variable, LONGEST);
    for (int i = 0; i < 8; i++)
        if (!malloc(((size_t)2 << 20) + (size_t)i * page * 16))
            exit(2);
    char *mapped = mmap(
        NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (char *at = mapped; at < mapped + bytes; at += page)
        function->write(at, page / function->width);
    munmap(mapped, bytes);
}

#define SAME(what, ...)                                                                            \
    do {                                                                                           \
        if (!(__VA_ARGS__)) {                                                                      \
            printf("FAILED: %s\n", what);                                                          \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

/* Old programs print behind their own text, which glibc allows: to blocks and elsewhere. */
static void print_behind(char *text)
{
    const char *from = text;
    strcpy(text, "abc");
    SAME("sprintf, behind itself", sprintf(text, "%sdef", from) == 6 && !strcmp(text, "abcdef"));
}

extern bool early_copies_are_libc, early_sets_are_libc;

/* Results and contents are those of the C library. */
static void results(void)
{
    char local[32];
    print_behind(local);
    SAME("memcpy in a constructor", early_copies_are_libc);
    SAME("memset in a constructor", early_sets_are_libc);
    char *block = malloc(32);
    wchar_t *wide = malloc(32 * sizeof *wide);
    memset(block, '#', 32);
    SAME("memcpy", memcpy(block, "abcdef", 7) == block && !strcmp(block, "abcdef"));
    SAME("memmove up", memmove(block + 2, block, 7) == block + 2 && !strcmp(block, "ababcdef"));
    SAME("memmove down", memmove(block, block + 2, 7) == block && !strcmp(block, "abcdef"));
    SAME("memmove, zero", memmove(block + 32, block, 0) == block + 32);
    SAME("mempcpy", mempcpy(block, "xyz", 3) == block + 3 && !strcmp(block, "xyzdef"));
    SAME("memccpy", memccpy(block, "12345", '3', 5) == block + 3 && !strcmp(block, "123def"));
    SAME("memccpy, none", !memccpy(block, "12345", '9', 2) && !strcmp(block, "123def"));
    SAME("memset", memset(block, 'q', 3) == block && !strcmp(block, "qqqdef"));
    SAME("strcpy", strcpy(block, "new") == block && !memcmp(block, "new\0ef", 6));
    SAME("stpcpy", stpcpy(block, "newer") == block + 5 && !strcmp(block, "newer"));
    SAME("strcat", strcat(block, "er") == block && !strcmp(block, "newerer"));
    SAME("strncat", strncat(block, "12345", 2) == block && !strcmp(block, "newerer12"));
    SAME("strncat, all", strncat(block, "3", 20) == block && !strcmp(block, "newerer123"));
    SAME("strncpy", strncpy(block, "ab", 6) == block && !memcmp(block, "ab\0\0\0\0r123", 10));
    SAME("stpncpy", stpncpy(block, "abcdef", 3) == block + 3 && !memcmp(block, "abc\0", 4));
    SAME("stpncpy, short", stpncpy(block, "a", 3) == block + 1 && !memcmp(block, "a\0\0\0", 4));
    bcopy("hello", block, 6);
    bzero(block + 4, 1);
    SAME("bcopy", !strcmp(block, "hell"));
    SAME("wmemset", wmemset(wide, 'w', 31) == wide && wide[30] == 'w');
    wide[31] = 0;
    SAME("wcscpy", wcscpy(wide, L"wide") == wide && !wcscmp(wide, L"wide"));
    SAME("wcpcpy", wcpcpy(wide, L"wider") == wide + 5);
    SAME("wcscat", wcscat(wide, L"er") == wide && !wcscmp(wide, L"widerer"));
    SAME("wcsncat", wcsncat(wide, L"12", 1) == wide && !wcscmp(wide, L"widerer1"));
    SAME("wcsncpy", wcsncpy(wide, L"ab", 4) == wide && !wide[2] && !wide[3] && wide[4] == 'r');
    SAME("wcpncpy", wcpncpy(wide, L"abc", 2) == wide + 2);
    SAME("wmemcpy", wmemcpy(wide, L"xyz", 4) == wide && !wcscmp(wide, L"xyz"));
    SAME("wmemmove", wmemmove(wide + 1, wide, 3) == wide + 1 && !wmemcmp(wide, L"xxyz", 4));
    SAME("wmempcpy", wmempcpy(wide, L"ab", 2) == wide + 2 && !wmemcmp(wide, L"abyz", 4));
    SAME("sprintf", sprintf(block, "%d-%s", 7, "x") == 3 && !strcmp(block, "7-x"));
    SAME("snprintf", snprintf(block, 32, "%040d", 1) == 40 && strlen(block) == 31);
    SAME("snprintf, much room", snprintf(block, 1 << 20, "%5.2f", 2.5) == 5);
    SAME("snprintf, none", snprintf(NULL, 0, "%d", 12345) == 5);
    SAME("snprintf, end", snprintf(block + 32, 0, "%d", 12345) == 5);
    print_behind(block);
    free(block);
    free(wide);
}

/* A handler that copies has interrupted malloc, a copy, or anything. */
static char *handlers_block;
static volatile int handled;

static void handle(int number)
{
    (void)number;
    memcpy(handlers_block, source, 64);
    strcpy(handlers_block, STRING(40));
    handled++;
}

static void in_handlers(void)
{
    handlers_block = malloc(64);
    signal(SIGALRM, handle);
    for (unsigned i = 0; handled < 20; i++) {
        if (i % 4096 == 0)
            ualarm(200, 0);
        char *block = malloc(i % 2000 + 1);
        memset(block, 1, i % 2000 + 1);
        free(block);
    }
}

int main(void)
{
    memset(source, 'a', LONGEST);
    wmemset(wide_source, 'a', LONGEST);
    results();
    in_handlers();
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        const struct function *function = &functions[i];
        for (unsigned j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            overflows(function, sizes[j]);
            underflows(function, sizes[j]);
        }
        big_blocks(function);
        elsewhere(function);
    }
    printf("%d functions, %d failures\n", FUNCTIONS, failures);
    return failures != 0;
}
