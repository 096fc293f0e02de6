/* Libraries that come and go while the allocator serves the dynamic linker: 10^4 times dlopen and
 * dlclose of a library with thread-local variables, name spaces of dlmopen, and the same under an
 * audit library (behaviour 28).
 *
 * usage: runtime_load TLS_LIBRARY ALLOCATOR [ROUNDS]
 */
#include "runtime_support.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <hakmem/hakmem.h>

typedef int touch_function(int);

static const char *tls_library;
static const char *allocator_library;
static unsigned rounds = 10000;

static touch_function *find_touch(void *handle)
{
    touch_function *touch;
    void *found = dlsym(handle, "tls_lib_touch");
    REQUIRE(found != NULL);
    memcpy(&touch, &found, sizeof found);
    return touch;
}

/* A thread that lives as long as the test, so that its table of TLS blocks sees every load. */
struct companion {
    pthread_t thread;
    pthread_barrier_t loaded;
    pthread_barrier_t touched;
    touch_function *touch; /* written before `loaded`; NULL ends the thread */
};

static void *companion_main(void *argument)
{
    struct companion *companion = argument;
    for (;;) {
        pthread_barrier_wait(&companion->loaded);
        if (companion->touch == NULL) {
            return NULL;
        }
        /* A fresh block each time: the old one went with the library. */
        REQUIRE(companion->touch(1) == 42);
        pthread_barrier_wait(&companion->touched);
    }
}

static void *touch_once(void *argument)
{
    touch_function *touch;
    memcpy(&touch, &argument, sizeof touch);
    REQUIRE(touch(3) == 42 && touch(0) == 45);
    return NULL;
}

static void touch_in_new_thread(touch_function *touch)
{
    void *argument;
    pthread_t thread;
    memcpy(&argument, &touch, sizeof argument);
    REQUIRE(pthread_create(&thread, NULL, touch_once, argument) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}

/* behaviour 28 */
static void test_load_and_unload(void **state)
{
    (void)state;
    struct companion companion = {.touch = NULL};
    pthread_barrier_init(&companion.loaded, NULL, 2);
    pthread_barrier_init(&companion.touched, NULL, 2);
    assert_int_equal(pthread_create(&companion.thread, NULL, companion_main, &companion), 0);
    long resident = 0;
    for (unsigned round = 0; round < rounds; round++) {
        void *handle = dlopen(tls_library, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(handle);
        touch_function *touch = find_touch(handle);
        assert_int_equal(touch(2), 42);
        assert_int_equal(touch(0), 44);
        if (round % 4 == 0) {
            companion.touch = touch;
            pthread_barrier_wait(&companion.loaded);
            pthread_barrier_wait(&companion.touched);
        }
        if (round % 32 == 0) {
            touch_in_new_thread(touch);
        }
        assert_int_equal(dlclose(handle), 0);
        if (round == rounds / 10) {
            resident = resident_kib();
        }
    }
    companion.touch = NULL;
    pthread_barrier_wait(&companion.loaded);
    assert_int_equal(pthread_join(companion.thread, NULL), 0);
    assert_in_range(resident, 1, 1 << 20);
    assert_true(resident_kib() - resident < 1024);
}

/* behaviour 28: a name space of its own has a C library of its own, but the dynamic linker, and
 * so the allocator that serves it, is shared. */
static void test_name_spaces(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 50; round++) {
        void *handle = dlmopen(LM_ID_NEWLM, tls_library, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(handle);
        touch_function *touch = find_touch(handle);
        assert_int_equal(touch(5), 42);
        assert_int_equal(touch(0), 47);
        touch_in_new_thread(touch);
        assert_int_equal(dlclose(handle), 0);
    }
}

/* behaviours 27 and 28: a second copy of the allocator in its own name space has its own heap. */
static void test_second_copy(void **state)
{
    (void)state;
    void *(*allocate)(size_t);
    void (*release)(void *);
    void *handle = dlmopen(LM_ID_NEWLM, allocator_library, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    void *found = dlsym(handle, "malloc");
    assert_non_null(found);
    memcpy(&allocate, &found, sizeof found);
    found = dlsym(handle, "free");
    assert_non_null(found);
    memcpy(&release, &found, sizeof found);
    assert_true(allocate != malloc);
    enum { BLOCKS = 300 };
    void *ours[BLOCKS];
    void *theirs[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t size = 1 + (size_t)i * i;
        ours[i] = malloc(size);
        theirs[i] = allocate(size);
        assert_non_null(ours[i]);
        assert_non_null(theirs[i]);
        pattern_fill(ours[i], size, i);
        pattern_fill(theirs[i], size, i + 1);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t size = 1 + (size_t)i * i;
        assert_true(pattern_holds(ours[i], size, i));
        assert_true(pattern_holds(theirs[i], size, i + 1));
        free(ours[i]);
        release(theirs[i]);
    }
    assert_int_equal(dlclose(handle), 0);
}

/* behaviour 28: when the test asks for auditing, it must really be there. */
static void test_audit_is_active(void **state)
{
    (void)state;
    const char *audit = getenv("LD_AUDIT");
    static char maps[1 << 16];
    size_t length = 0;
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    for (ssize_t got = 1; got > 0 && length < sizeof maps - 1; length += (size_t)got) {
        got = read(file, maps + length, sizeof maps - 1 - length);
        assert_true(got >= 0);
    }
    close(file);
    maps[length] = '\0';
    assert_non_null(strstr(maps, audit));
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        say("usage: runtime_load TLS_LIBRARY ALLOCATOR [ROUNDS]\n");
        return 2;
    }
    (void)hakmem_version();
    tls_library = argv[1];
    allocator_library = argv[2];
    if (argc > 3) {
        rounds = (unsigned)strtoul(argv[3], NULL, 10);
    }
    watchdog(HANG_SECONDS, "loading and unloading libraries");
    const struct CMUnitTest both[] = {
        cmocka_unit_test(test_load_and_unload),
        cmocka_unit_test(test_second_copy),
    };
    const struct CMUnitTest plain[] = {cmocka_unit_test(test_name_spaces)};
    const struct CMUnitTest audited[] = {cmocka_unit_test(test_audit_is_active)};
    return cmocka_run_group_tests_name("runtime_load", both, NULL, NULL) +
           (getenv("LD_AUDIT") ? cmocka_run_group_tests_name("audited", audited, NULL, NULL)
                               : cmocka_run_group_tests_name("plain", plain, NULL, NULL));
}
