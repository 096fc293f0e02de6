/* fork while other threads hold locks of the C library or of another one, under which they allocate
 * (behaviour 44). Knows of no allocator: built with the library linked, and run with it preloaded.
 *
 * usage: runtime_fork_beside LIBRARY
 *
 * LIBRARY is runtime_fork_lib, which the program is linked with as well.
 */
#include "runtime_support.h"

#include <dlfcn.h>
#include <grp.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/socket.h>

#ifndef LM_ID_BASE /* musl has one name space */
#define dlmopen(space, path, mode) dlopen(path, mode)
#endif

#define FORKS 150
#define LINE_BYTES 300000

void library_work(unsigned round);

static const char *library_path;
static char lines_path[] = "/tmp/runtime_fork_beside_XXXXXX";

/* Long lines: getline makes its buffer longer while it holds the lock of the stream. */
static void write_lines(void)
{
    FILE *file = fdopen(mkstemp(lines_path), "w");
    REQUIRE(file != NULL);
    for (unsigned line = 0; line < 4; line++) {
        for (unsigned i = 0; i < LINE_BYTES; i++) {
            fputc('a', file);
        }
        fputc('\n', file);
    }
    REQUIRE(fclose(file) == 0);
}

static void *read_lines(void *argument)
{
    (void)argument;
    for (;;) {
        char *line = NULL;
        size_t size = 0;
        FILE *file = fopen(lines_path, "r");
        REQUIRE(file != NULL);
        while (getline(&line, &size, file) > 0) {
        }
        free(line);
        fclose(file);
    }
    return NULL;
}

static void *flush_all(void *argument)
{
    (void)argument;
    for (;;) {
        fflush(NULL);
    }
    return NULL;
}

static void *look_up_users(void *argument)
{
    (void)argument;
    for (;;) {
        (void)getpwnam("root");
        (void)getgrnam("root");
        setpwent();
        (void)getpwent();
        endpwent();
    }
    return NULL;
}

static void *look_up_hosts(void *argument)
{
    (void)argument;
    for (;;) {
        struct addrinfo *found = NULL;
        if (getaddrinfo("localhost", NULL, NULL, &found) == 0) {
            freeaddrinfo(found);
        }
    }
    return NULL;
}

static void *use_library(void *argument)
{
    (void)argument;
    for (unsigned round = 0;; round++) {
        library_work(round);
    }
    return NULL;
}

/* Each time the library registers its handlers, and the C library allocates under its lock once
 * there are many. */
static void *load_and_unload(void *argument)
{
    (void)argument;
    for (;;) {
        void *library = dlmopen(LM_ID_BASE, library_path, RTLD_NOW);
        REQUIRE(library != NULL);
        dlclose(library);
    }
    return NULL;
}

static void no_handler(void)
{
}

static void *register_handlers(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < 3000; i++) {
        REQUIRE(pthread_atfork(no_handler, no_handler, no_handler) == 0);
    }
    return NULL;
}

static void start(void *(*body)(void *))
{
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, body, NULL) == 0);
}

static void child_main(void)
{
    void *blocks[100];
    for (unsigned i = 0; i < 100; i++) {
        blocks[i] = malloc(i * i * 10 + 1);
        REQUIRE(blocks[i] != NULL);
        pattern_fill(blocks[i], i * i * 10 + 1, i);
    }
    for (unsigned i = 0; i < 100; i++) {
        REQUIRE(pattern_holds(blocks[i], i * i * 10 + 1, i));
        free(blocks[i]);
    }
    _exit(0);
}

static void fork_many(void)
{
    for (unsigned i = 0; i < FORKS; i++) {
        int status;
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            child_main();
        }
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
        guard_step();
    }
}

static void beside_stdio(void)
{
    start(read_lines);
    start(flush_all);
    fork_many();
}

static void beside_lookups(void)
{
    start(look_up_users);
    start(look_up_hosts);
    fork_many();
}

static void beside_library(void)
{
    start(use_library);
    fork_many();
}

static void beside_loading(void)
{
    start(load_and_unload);
    fork_many();
}

static void beside_registration(void)
{
    start(register_handlers);
    fork_many();
}

static unsigned failures;

static void run(const char *name, void (*body)(void))
{
    int status = run_guarded(body, HANG_SECONDS);
    say(name);
    say(status == 0 ? ": ok\n" : ": FAILED\n");
    failures += status != 0;
}

int main(int argc, char **argv)
{
    library_path = argc > 1 ? argv[1] : "";
    write_lines();
    run("fork beside getline and fflush(NULL)", beside_stdio);
    run("fork beside look-ups of users, groups and hosts", beside_lookups);
    run("fork beside a library with handlers of its own", beside_library);
    run("fork beside dlopen and dlclose", beside_loading);
    run("fork beside pthread_atfork", beside_registration);
    unlink(lines_path);
    return failures != 0;
}
