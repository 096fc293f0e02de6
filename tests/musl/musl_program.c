/* What a program that is linked with musl may rely on when the library is preloaded, where that is
 * another matter than with glibc. Knows of no allocator.
 *
 * usage: musl_program CASE [LIBRARY...]
 */
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUIRE(condition)                                                                         \
    ((condition) ? (void)0                                                                         \
                 : (dprintf(2, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition), abort()))

/* ---- Who serves ------------------------------------------------------------------------------ */

/* musl hardens its own calloc and memalign family against a malloc that was replaced in parts. */
static void case_names(char **arguments)
{
    static const char *const names[] = {"malloc",      "calloc",        "realloc",
                                        "free",        "aligned_alloc", "posix_memalign",
                                        "memalign",    "valloc",        "malloc_usable_size",
                                        "reallocarray"};
    (void)arguments;
    free(malloc(100)); /* musl 1.2.5 needs no block for what follows, unlike 1.2.3 */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Dl_info info;
        void *function = dlsym(RTLD_DEFAULT, names[i]);
        REQUIRE(function && dladdr(function, &info) && info.dli_fname);
        printf("%s %s\n", names[i], strrchr(info.dli_fname, '/') + 1);
    }
}

static void check_aligned(void *block, size_t alignment, size_t size)
{
    REQUIRE(block && (uintptr_t)block % alignment == 0);
    memset(block, 0x5a, size);
    REQUIRE(malloc_usable_size(block) >= size);
    free(block);
}

static void case_aligned(char **arguments)
{
    (void)arguments;
    for (size_t alignment = sizeof(void *); alignment <= 1 << 22; alignment *= 2) {
        static const size_t sizes[] = {1, 100, 5000, 200000, 3 << 20};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            void *block = NULL;
            REQUIRE(posix_memalign(&block, alignment, sizes[i]) == 0);
            check_aligned(block, alignment, sizes[i]);
            check_aligned(aligned_alloc(alignment, sizes[i]), alignment, sizes[i]);
            check_aligned(memalign(alignment, sizes[i]), alignment, sizes[i]);
        }
    }
    check_aligned(valloc(10), (size_t)sysconf(_SC_PAGESIZE), 10);
}

/* ---- Blocks that the C library makes and the program frees, and the other way round ------------
 */

static void nothing(void)
{
}

static void case_libc(char **arguments)
{
    char *text = NULL, *line = NULL, name[64];
    size_t size = 0;
    struct dirent **entries;
    regex_t expression;
    (void)arguments;
    free(strdup("copied"));
    REQUIRE(asprintf(&text, "%0*d", 5000, 7) == 5000);
    FILE *lines = fmemopen(text, 5000, "r");
    REQUIRE(lines && getline(&line, &size, lines) == 5000);
    fclose(lines);
    free(line);
    free(text);
    FILE *stream = open_memstream(&text, &size);
    REQUIRE(stream);
    for (int i = 0; i < 100000; i++)
        fputs("x", stream);
    REQUIRE(fclose(stream) == 0 && size == 100000);
    free(text);
    free(getcwd(NULL, 0));
    free(realpath("/", NULL));
    int count = scandir("/", &entries, NULL, alphasort);
    REQUIRE(count > 0);
    while (count-- > 0)
        free(entries[count]);
    free(entries);
    REQUIRE(regcomp(&expression, "(a|b)*c{2,5}", REG_EXTENDED) == 0);
    REQUIRE(regexec(&expression, "ababcc", 0, NULL, 0) == 0);
    regfree(&expression);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "VARIABLE_%d", i % 50);
        REQUIRE(setenv(name, name, 1) == 0);
    }
    for (int i = 0; i < 200; i++)
        REQUIRE(atexit(nothing) == 0);
    text = malloc(100);
    REQUIRE(text && setvbuf(stdin, text, _IOFBF, 100) == 0);
}

/* ---- Threads -----------------------------------------------------------------------------------
 */

enum { KEYS = 30, ROUNDS = 4, THREADS = 8 };

static pthread_key_t keys[KEYS];
static unsigned destructor_calls; /* atomic */

/* Frees the value of this round and sets another, until the last round. */
static void destroy(void *argument)
{
    unsigned *value = argument, round = value[0], key = value[1];
    free(value);
    free(malloc(50 + 5000 * (key % 2)));
    __atomic_fetch_add(&destructor_calls, 1, __ATOMIC_RELAXED);
    if (round + 1 < ROUNDS) {
        unsigned *next = malloc(100);
        REQUIRE(next);
        next[0] = round + 1;
        next[1] = key;
        REQUIRE(pthread_setspecific(keys[key], next) == 0);
    }
}

static void *set_keys(void *unused)
{
    for (unsigned key = 0; key < KEYS; key++) {
        unsigned *value = malloc(100);
        REQUIRE(value);
        value[0] = 0;
        value[1] = key;
        REQUIRE(pthread_setspecific(keys[key], value) == 0);
    }
    return unused;
}

static void case_exits(char **arguments)
{
    (void)arguments;
    for (unsigned key = 0; key < KEYS; key++)
        REQUIRE(pthread_key_create(&keys[key], destroy) == 0);
    for (int round = 0; round < 300; round++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, set_keys, NULL) == 0);
        REQUIRE(pthread_join(thread, NULL) == 0);
    }
    REQUIRE(destructor_calls == 300 * KEYS * ROUNDS);
}

/* One of the blocks that threads pass to one another; each is filled with its own address. */
static uintptr_t *volatile exchange[1000];

static void *work(void *argument)
{
    uint64_t random = (uintptr_t)argument * 2654435761u + 1;
    for (int i = 0; i < 100000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t words = 2 + (random >> 40) % ((random >> 33) % 50 ? 60 : 4000);
        uintptr_t *block = malloc(words * sizeof *block);
        REQUIRE(block);
        block[0] = words;
        block[words - 1] = (uintptr_t)block;
        block = __atomic_exchange_n(&exchange[(random >> 20) % 1000], block, __ATOMIC_ACQ_REL);
        REQUIRE(!block || block[block[0] - 1] == (uintptr_t)block);
        free(block);
    }
    return NULL;
}

static void start(pthread_t *threads, void *(*body)(void *), size_t stack_bytes)
{
    pthread_attr_t attributes;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    if (stack_bytes)
        REQUIRE(pthread_attr_setstacksize(&attributes, stack_bytes) == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], &attributes, body, (void *)(i + 1)) == 0);
}

static void join(pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_join(threads[i], NULL) == 0);
}

/* With the stack that musl gives: 128 KiB. */
static void case_threads(char **arguments)
{
    pthread_t threads[THREADS];
    (void)arguments;
    start(threads, work, 0);
    join(threads);
}

static void case_small_stacks(char **arguments)
{
    pthread_t threads[THREADS];
    start(threads, work, (size_t)atoi(arguments[0]) * 1024);
    join(threads);
}

/* ---- Processes ---------------------------------------------------------------------------------
 */

static volatile int stop;

static void *work_on(void *unused)
{
    while (!stop) {
        void *blocks[100];
        for (int i = 0; i < 100; i++)
            blocks[i] = malloc((size_t)(i * i));
        for (int i = 0; i < 100; i++)
            free(blocks[i]);
    }
    return unused;
}

static void await(pid_t child)
{
    int status;
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void case_forks(char **arguments)
{
    pthread_t threads[THREADS];
    (void)arguments;
    start(threads, work_on, 0);
    for (int i = 0; i < 200; i++) {
        pid_t child = i % 2 ? fork() : _Fork();
        if (child == 0) {
            for (int k = 0; k < 1000; k++)
                free(malloc((size_t)k * 10));
            _exit(0);
        }
        await(child);
    }
    stop = 1;
    join(threads);
}

static void case_spawns(char **arguments)
{
    char program[] = "/proc/self/exe", name[] = "names";
    char *own[] = {program, name, NULL};
    (void)arguments;
    pid_t child;
    REQUIRE(posix_spawn(&child, program, NULL, NULL, own, environ) == 0);
    await(child);
    child = vfork();
    if (child == 0) {
        free(malloc(100));
        _exit(0);
    }
    await(child);
}

static void *work_until_cancelled(void *unused)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;)
        free(malloc(100000));
    return unused;
}

/* malloc is not safe against this by POSIX; that no lock stays held is the library's own promise.
 */
static void case_cancelled(char **arguments)
{
    (void)arguments;
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, work_until_cancelled, NULL) == 0);
        usleep((useconds_t)(i * 10));
        REQUIRE(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
        free(malloc(100000));
    }
}

static void case_double_free(char **arguments)
{
    char *block = malloc(100);
    (void)arguments;
    free(block);
    free(block);
}

/* ---- Libraries ---------------------------------------------------------------------------------
 */

/* LIBRARY allocates in its constructor, in its destructor and for its thread-local variables. */
static void case_opens(char **arguments)
{
    for (int i = 0; i < 20; i++) {
        void *library = dlopen(arguments[0], RTLD_NOW);
        REQUIRE(library);
        void *(*make)(void);
        *(void **)&make = dlsym(library, "library_block");
        REQUIRE(make);
        free(make());
        REQUIRE(dlclose(library) == 0);
        REQUIRE(!dlopen("/no/such/library.so", RTLD_NOW) && dlerror());
    }
}

/* A library that was not there at the start gets no place among the variables of a thread. */
static void case_refused(char **arguments)
{
    REQUIRE(!dlopen(arguments[0], RTLD_NOW));
    printf("%s\n", dlerror());
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(char **arguments);
    } cases[] = {
        {"names", case_names}, {"aligned", case_aligned}, {"libc", case_libc},
        {"exits", case_exits}, {"threads", case_threads}, {"small_stacks", case_small_stacks},
        {"forks", case_forks}, {"spawns", case_spawns},   {"cancelled", case_cancelled},
        {"opens", case_opens}, {"refused", case_refused}, {"double_free", case_double_free},
    };
    for (size_t i = 0; count > 1 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i].name, arguments[1]) == 0) {
            cases[i].run(arguments + 2);
            return 0;
        }
    fprintf(stderr, "usage: musl_program CASE [LIBRARY...]\n");
    return 2;
}
