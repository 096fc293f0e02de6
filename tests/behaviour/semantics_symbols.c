/* Owns the tests that every public name is there, belongs to hakmem, and does what it says:
 * behaviours 1, 2, 3, 4 and the C side of 5 and 6.
 *
 * The names are looked up with dlsym, as a preloaded program's dynamic linker would. What the
 * library must *not* export is checked in tests/packaging.
 */
#include "semantics_support.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>

typedef void *(*allocate_fn)(size_t);
typedef void (*release_fn)(void *);

/* behaviours 1, 2, 3, 4 */
static const char *const c_names[] = {
    "malloc",
    "free",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
    "cfree",
    "mallopt",
    "mallinfo",
    "mallinfo2",
    "malloc_trim",
    "malloc_stats",
    "malloc_info",
    "__libc_malloc",
    "__libc_free",
    "__libc_calloc",
    "__libc_realloc",
    "__libc_memalign",
    "__libc_valloc",
    "__libc_pvalloc",
    "__posix_memalign",
    "free_sized",
    "free_aligned_sized",
    "sdallocx",
    "malloc_good_size",
    "malloc_object_size",
    "malloc_object_size_fast",
};

/* behaviour 5 */
static const char *const cxx_names[] = {
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_Znwm12__hot_cold_t",
    "_Znam12__hot_cold_t",
    "_ZnwmRKSt9nothrow_t12__hot_cold_t",
    "_ZnamRKSt9nothrow_t12__hot_cold_t",
    "_ZnwmSt11align_val_t12__hot_cold_t",
    "_ZnamSt11align_val_t12__hot_cold_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t",
};

static void *library_base(void)
{
    Dl_info info;
    void *own = dlsym(RTLD_DEFAULT, "hakmem_version");
    assert_non_null(own);
    assert_true(dladdr(own, &info) != 0);
    assert_non_null(strstr(info.dli_fname, "libhakmem"));
    return info.dli_fbase;
}

static void *find(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    if (symbol == NULL) {
        fail_msg("%s is not exported", name);
    }
    return symbol;
}

static void assert_ours(const char *name, const void *base)
{
    Dl_info info;
    if (dladdr(find(name), &info) == 0) {
        fail_msg("%s belongs to no library", name);
    } else if (info.dli_fbase != base) {
        fail_msg("%s comes from %s", name, info.dli_fname);
    }
}

/* behaviours 1, 2, 3, 4 */
static void c_names_resolve_into_the_library(void **state)
{
    (void)state;
    void *base = library_base();
    for (size_t i = 0; i < COUNT_OF(c_names); i++) {
        assert_ours(c_names[i], base);
    }
}

/* behaviour 5 */
static void cxx_operators_resolve_into_the_library(void **state)
{
    (void)state;
    void *base = library_base();
    for (size_t i = 0; i < COUNT_OF(cxx_names); i++) {
        assert_ours(cxx_names[i], base);
    }
}

/* The allocation functions in one shape, each reached through its public or internal name. */

static void *call_calloc(const char *name, size_t size)
{
    void *(*function)(size_t, size_t) = (void *(*)(size_t, size_t))find(name);
    return function(1, size);
}

static void *call_realloc(const char *name, size_t size)
{
    void *(*function)(void *, size_t) = (void *(*)(void *, size_t))find(name);
    return function(NULL, size);
}

static void *call_aligned(const char *name, size_t size)
{
    void *(*function)(size_t, size_t) = (void *(*)(size_t, size_t))find(name);
    return function(64, size);
}

static void *call_posix_memalign(const char *name, size_t size)
{
    void *block = NULL;
    int (*function)(void **, size_t, size_t) = (int (*)(void **, size_t, size_t))find(name);
    return function(&block, 64, size) == 0 ? block : NULL;
}

static void *call_reallocarray(const char *name, size_t size)
{
    void *(*function)(void *, size_t, size_t) = (void *(*)(void *, size_t, size_t))find(name);
    return function(NULL, 1, size);
}

static void *call_plain(const char *name, size_t size)
{
    return ((allocate_fn)find(name))(size);
}

static const struct allocator {
    const char *name;
    void *(*call)(const char *name, size_t size);
} allocators[] = {
    {"malloc", call_plain},
    {"__libc_malloc", call_plain},
    {"calloc", call_calloc},
    {"__libc_calloc", call_calloc},
    {"realloc", call_realloc},
    {"__libc_realloc", call_realloc},
    {"reallocarray", call_reallocarray},
    {"memalign", call_aligned},
    {"__libc_memalign", call_aligned},
    {"aligned_alloc", call_aligned},
    {"posix_memalign", call_posix_memalign},
    {"__posix_memalign", call_posix_memalign},
    {"valloc", call_plain},
    {"__libc_valloc", call_plain},
    {"pvalloc", call_plain},
    {"__libc_pvalloc", call_plain},
    {"_Znwm", call_plain},
    {"_Znam12__hot_cold_t", call_plain},
};

static void release_plain(const char *name, void *block, size_t size)
{
    (void)size;
    ((release_fn)find(name))(block);
}

static void release_realloc(const char *name, void *block, size_t size)
{
    (void)size;
    void *(*function)(void *, size_t) = (void *(*)(void *, size_t))find(name);
    assert_null(function(block, 0));
}

static void release_grown(const char *name, void *block, size_t size)
{
    void *(*function)(void *, size_t) = (void *(*)(void *, size_t))find(name);
    void *grown = function(block, size * 3);
    assert_non_null(grown);
    assert_true(pattern_holds(grown, size, 5));
    free(grown);
}

static void release_sized(const char *name, void *block, size_t size)
{
    ((void (*)(void *, size_t))find(name))(block, size);
}

static void release_with_flags(const char *name, void *block, size_t size)
{
    ((void (*)(void *, size_t, int))find(name))(block, size, 0);
}

static const struct releaser {
    const char *name;
    void (*call)(const char *name, void *block, size_t size);
} releasers[] = {
    {"free", release_plain},
    {"__libc_free", release_plain},
    {"cfree", release_plain},
    {"realloc", release_realloc},
    {"__libc_realloc", release_realloc},
    {"realloc", release_grown},
    {"__libc_realloc", release_grown},
    {"free_sized", release_sized},
    {"sdallocx", release_with_flags},
    {"_ZdlPv", release_plain},
    {"_ZdaPvm", release_sized},
};

/* behaviours 1, 3, 4, 5: any block may be given back through any of the names. */
static void names_mix(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 40, 1000, 5000, 100000, 3 * MIB};
    for (size_t a = 0; a < COUNT_OF(allocators); a++) {
        for (size_t r = 0; r < COUNT_OF(releasers); r++) {
            for (size_t s = 0; s < COUNT_OF(sizes); s++) {
                void *block = allocators[a].call(allocators[a].name, sizes[s]);
                assert_non_null(block);
                assert_true(malloc_usable_size(block) >= sizes[s]);
                pattern_fill(block, sizes[s], 5);
                releasers[r].call(releasers[r].name, block, sizes[s]);
            }
        }
    }
}

/* behaviour 4 */
static void aligned_blocks_take_the_aligned_sized_free(void **state)
{
    (void)state;
    void (*release)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))find("free_aligned_sized");
    for (size_t alignment = 16; alignment <= 4 * MIB; alignment *= 4) {
        for (size_t size = 1; size <= 8 * MIB; size *= 8) {
            void *block = aligned_alloc(alignment, size);
            assert_non_null(block);
            assert_true(is_aligned(block, alignment));
            *(char *)block = 1;
            release(block, alignment, size);
        }
    }
}

/* behaviour 4 */
static void sized_frees_take_null(void **state)
{
    (void)state;
    ((void (*)(void *, size_t))find("free_sized"))(NULL, 100);
    ((void (*)(void *, size_t, size_t))find("free_aligned_sized"))(NULL, 64, 100);
    release_plain("cfree", NULL, 0);
    release_plain("__libc_free", NULL, 0);
}

/* behaviour 4: the block is really freed, or address space would grow by 4 GiB. */
static void sized_frees_really_free(void **state)
{
    (void)state;
    size_t before = virtual_bytes();
    for (unsigned i = 0; i < 20000; i++) {
        release_sized("free_sized", malloc(50000), 50000);
        release_with_flags("sdallocx", malloc(50000), 50000);
        ((void (*)(void *, size_t, size_t))find("free_aligned_sized"))(
            aligned_alloc(4096, 90000), 4096, 90000);
        release_plain("cfree", malloc(20000), 0);
    }
    assert_true(virtual_bytes() < before + 512 * MIB);
}

/* behaviour 4 */
static void good_size_is_what_malloc_gives(void **state)
{
    (void)state;
    size_t (*good_size)(size_t) = (size_t(*)(size_t))find("malloc_good_size");
    for (size_t size = 0; size <= 9 * MIB; size += size < 2100 ? 1 : size / 13) {
        void *block = malloc(size);
        assert_non_null(block);
        assert_true(good_size(size) >= size);
        /* A class without a slab may have borrowed a larger block. */
        assert_true(malloc_usable_size(block) >= good_size(size));
        assert_int_equal(good_size(size), hakmem_good_size(size));
        assert_int_equal(hakmem_usable_size(block), malloc_usable_size(block));
        free(block);
    }
    assert_int_equal(good_size(SIZE_MAX), SIZE_MAX);
}

static void new_without_memory(void)
{
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    (void)((allocate_fn)dlsym(RTLD_DEFAULT, "_Znwm"))(opaque(SIZE_MAX));
    _exit(0);
}

/* behaviour 6: where there is no C++ runtime, a throwing new ends the program with a message. */
static void new_needs_no_cxx_runtime(void **state)
{
    (void)state;
    assert_null(dlsym(RTLD_DEFAULT, "_ZSt15get_new_handlerv"));
    void *(*quiet_new)(size_t, const void *) =
        (void *(*)(size_t, const void *))find("_ZnwmRKSt9nothrow_t");
    assert_null(quiet_new(opaque(SIZE_MAX), NULL));

    char message[4096] = "";
    int ends[2];
    int status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        new_without_memory();
    }
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(read(ends[0], message, sizeof(message) - 1) > 0);
    close(ends[0]);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_ptr_equal(strstr(message, "hakmem: "), message);
    /* What follows tells who called. */
    const char *second = strchr(message, '\n');
    assert_true(second && strncmp(second, "\n  in ", strlen("\n  in ")) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c_names_resolve_into_the_library),
        cmocka_unit_test(cxx_operators_resolve_into_the_library),
        cmocka_unit_test(names_mix),
        cmocka_unit_test(aligned_blocks_take_the_aligned_sized_free),
        cmocka_unit_test(sized_frees_take_null),
        cmocka_unit_test(sized_frees_really_free),
        cmocka_unit_test(good_size_is_what_malloc_gives),
        cmocka_unit_test(new_needs_no_cxx_runtime),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
