/* Loads the library, or a plugin with a copy of it inside, by dlopen into a program that runs on
 * the C library's malloc, uses it from several threads and closes it (behaviour 27). Not linked
 * with it: it must come late.
 *
 * usage: runtime_dlopen LIBRARY [ANOTHER]
 */
#include "runtime_support.h"

#include <dlfcn.h>
#include <pthread.h>

#define THREADS 4
#define BLOCKS 500

typedef void *malloc_function(size_t);
typedef void free_function(void *);

struct allocator {
    void *handle;
    malloc_function *allocate;
    free_function *release;
};

static struct allocator library_open(const char *path, int mode)
{
    struct allocator opened;
    opened.handle = dlopen(path, mode);
    if (opened.handle == NULL) {
        say(dlerror());
        say("\n");
        abort();
    }
    void *found = dlsym(opened.handle, "malloc");
    REQUIRE(found != NULL);
    memcpy(&opened.allocate, &found, sizeof found);
    found = dlsym(opened.handle, "free");
    REQUIRE(found != NULL);
    memcpy(&opened.release, &found, sizeof found);
    REQUIRE(opened.allocate != malloc);
    return opened;
}

static size_t block_size(unsigned index)
{
    return 1 + (size_t)index * 97;
}

/* Blocks of both allocators side by side, each freed by its own. */
static void use_both(const struct allocator *library)
{
    static __thread void *ours[BLOCKS];
    static __thread void *theirs[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        ours[i] = library->allocate(block_size(i));
        theirs[i] = malloc(block_size(i));
        REQUIRE(ours[i] != NULL && theirs[i] != NULL);
        pattern_fill(ours[i], block_size(i), i);
        pattern_fill(theirs[i], block_size(i), i + 1);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        REQUIRE(pattern_holds(ours[i], block_size(i), i));
        REQUIRE(pattern_holds(theirs[i], block_size(i), i + 1));
        library->release(ours[i]);
        free(theirs[i]);
    }
}

struct meeting {
    const struct allocator *library;
    pthread_barrier_t used;
    pthread_barrier_t closed;
};

static void *thread_main(void *argument)
{
    struct meeting *meeting = argument;
    use_both(meeting->library);
    pthread_barrier_wait(&meeting->used);
    pthread_barrier_wait(&meeting->closed);
    /* Its exit runs after dlclose whatever the library left for the end of this thread. */
    free(malloc(100));
    return NULL;
}

/* Threads that used the library end after it was closed. */
static void check_close_before_thread_exit(const char *path, int mode)
{
    struct allocator library = library_open(path, mode);
    struct meeting meeting = {.library = &library};
    pthread_t threads[THREADS];
    pthread_barrier_init(&meeting.used, NULL, THREADS + 1);
    pthread_barrier_init(&meeting.closed, NULL, THREADS + 1);
    for (unsigned i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, thread_main, &meeting) == 0);
    }
    pthread_barrier_wait(&meeting.used);
    char *kept = library.allocate(5000);
    pattern_fill(kept, 5000, 9);
    REQUIRE(dlclose(library.handle) == 0);
    pthread_barrier_wait(&meeting.closed);
    for (unsigned i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    /* Blocks live on, and the library takes them back when it is opened again. */
    REQUIRE(pattern_holds(kept, 5000, 9));
    library = library_open(path, mode);
    library.release(kept);
    use_both(&library);
    REQUIRE(dlclose(library.handle) == 0);
}

static void *use_and_end(void *argument)
{
    struct meeting *meeting = argument;
    use_both(meeting->library);
    pthread_barrier_wait(&meeting->used);
    return NULL;
}

/* Threads end while the library is closed. */
static void check_close_beside_thread_exit(const char *path)
{
    for (unsigned round = 0; round < 30; round++) {
        struct allocator library = library_open(path, RTLD_NOW | RTLD_LOCAL);
        struct meeting meeting = {.library = &library};
        pthread_t threads[THREADS];
        pthread_barrier_init(&meeting.used, NULL, THREADS + 1);
        for (unsigned i = 0; i < THREADS; i++) {
            REQUIRE(pthread_create(&threads[i], NULL, use_and_end, &meeting) == 0);
        }
        pthread_barrier_wait(&meeting.used);
        REQUIRE(dlclose(library.handle) == 0);
        for (unsigned i = 0; i < THREADS; i++) {
            REQUIRE(pthread_join(threads[i], NULL) == 0);
        }
    }
}

static void check_fork_after_close(const char *path)
{
    struct allocator library = library_open(path, RTLD_NOW | RTLD_LOCAL);
    use_both(&library);
    REQUIRE(dlclose(library.handle) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        check_close_before_thread_exit(path, RTLD_NOW | RTLD_LOCAL);
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

/* Each has its own copy, and the one lives on when the other is closed. */
static void check_together(const char *path, const char *another)
{
    struct allocator first = library_open(path, RTLD_NOW | RTLD_LOCAL);
    struct allocator second = library_open(another, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(first.allocate != second.allocate);
    use_both(&first);
    use_both(&second);
    char *kept = first.allocate(5000);
    pattern_fill(kept, 5000, 9);
    REQUIRE(dlclose(first.handle) == 0);
    check_close_before_thread_exit(another, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(pattern_holds(kept, 5000, 9));
    REQUIRE(dlclose(second.handle) == 0);
}

static void check_many_times(const char *path)
{
    long before = 0, mapped_before = 0;
    for (unsigned round = 0; round < 1000; round++) {
        struct allocator library = library_open(path, RTLD_NOW | RTLD_LOCAL);
        library.release(library.allocate(1 + round));
        REQUIRE(dlclose(library.handle) == 0);
        if (round == 100) {
            before = resident_kib();
            mapped_before = mapped_kib();
        }
    }
    REQUIRE(mapped_kib() - mapped_before < 4096 + hardened_kib(HARDENED_WAITING_KIB));
    REQUIRE(resident_kib() - before < 512 + hardened_kib(HARDENED_SCATTERED_KIB));
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        say("usage: runtime_dlopen LIBRARY [ANOTHER]\n");
        return 2;
    }
    watchdog(HANG_SECONDS, "dlopen of the library");
    check_close_before_thread_exit(argv[1], RTLD_NOW | RTLD_LOCAL);
    check_close_before_thread_exit(argv[1], RTLD_NOW | RTLD_GLOBAL);
    check_close_before_thread_exit(argv[1], RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
    check_close_beside_thread_exit(argv[1]);
    check_fork_after_close(argv[1]);
    if (argc > 2) {
        check_together(argv[1], argv[2]);
    }
    check_many_times(argv[1]);
    return 0;
}
