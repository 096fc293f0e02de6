/* Libraries that are opened with RTLD_DEEPBIND get the malloc of the program (behaviour 28), and
 * dlopen is the C library's in all other respects.
 *
 * usage: runtime_deepbind cleared|early|kept|between|opened LIBRARY OTHER
 *
 * LIBRARY is libruntime_deepbind_lib.so, and lies where the RUNPATH of runtime_deepbind_caller
 * leads, but not that of this program. OTHER: "cleared" and "early" need that caller, "between"
 * runtime_deepbind_between, "opened" the allocator, which serves nobody then.
 */
#include "runtime_support.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

struct library {
    void *handle;
    void *(*make)(size_t);
    void *(*resize)(void *, size_t);
    void (*release)(void *);
    char *(*print)(int);
    void *(*malloc)(void);
    int (*whose)(void);
};

typedef void *open_function(const char *, int);

/* The plugin has a function of the same name. */
int runtime_whose(void);
int runtime_whose(void)
{
    return 1;
}

static void find(void *library, void *function, const char *name)
{
    void *address = dlsym(library, name);
    if (address == NULL)
        say(dlerror());
    REQUIRE(address != NULL);
    memcpy(function, &address, sizeof address);
}

static struct library look_up(void *handle)
{
    struct library library = {.handle = handle};
    if (handle == NULL)
        say(dlerror());
    REQUIRE(handle != NULL);
    find(handle, &library.make, "lib_make");
    find(handle, &library.resize, "lib_resize");
    find(handle, &library.release, "lib_release");
    find(handle, &library.print, "lib_print");
    find(handle, &library.malloc, "lib_malloc");
    find(handle, &library.whose, "lib_whose");
    return library;
}

/* Blocks of each size go both ways, and are moved by the other side. */
static void exchange(const struct library *library)
{
    static const size_t sizes[] = {1, 100, 5000, 40000, 200000, 3000000};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *theirs = library->make(sizes[i]), *ours = malloc(sizes[i]);
        REQUIRE(theirs != NULL && ours != NULL);
        pattern_fill(theirs, sizes[i], 1);
        pattern_fill(ours, sizes[i], 2);
        theirs = realloc(theirs, 2 * sizes[i]);
        ours = library->resize(ours, 2 * sizes[i]);
        REQUIRE(pattern_holds(theirs, sizes[i], 1) && pattern_holds(ours, sizes[i], 2));
        free(theirs);
        library->release(ours);
    }
    char *text = library->print(7);
    REQUIRE(text != NULL && strcmp(text, "number 7") == 0);
    free(text);
}

static void *own_malloc(void)
{
    void *(*volatile function)(size_t) = malloc;
    void *address;
    memcpy(&address, (void *)&function, sizeof address);
    return address;
}

static void check_cleared(const struct library *library)
{
    REQUIRE(library->malloc() == own_malloc());
    REQUIRE(library->whose() == 1);
    exchange(library);
}

/* As the flag asks for. */
static void check_kept(const struct library *library)
{
    REQUIRE(library->whose() == 2);
    library->release(library->make(100));
    REQUIRE(dlclose(library->handle) == 0);
}

static open_function *caller_of(void *library)
{
    open_function *open;
    find(library, &open, "caller_open");
    return open;
}

/* The caller's RUNPATH and directory count, not those of the program or the allocator. */
static void check_caller(void *caller)
{
    open_function *open = caller_of(caller);
    REQUIRE(dlopen("libruntime_deepbind_lib.so", RTLD_NOW) == NULL);
    REQUIRE(strstr(dlerror(), "libruntime_deepbind_lib.so") != NULL);
    static const char *const names[] = {
        "libruntime_deepbind_lib.so", "$ORIGIN/deepbind/libruntime_deepbind_lib.so"};
    for (unsigned i = 0; i < 2; i++) {
        struct library library = look_up(open(names[i], RTLD_LAZY | RTLD_DEEPBIND));
        check_cleared(&library);
        REQUIRE(dlclose(library.handle) == 0);
    }
    REQUIRE(open("no_such_library.so", RTLD_NOW | RTLD_DEEPBIND) == NULL);
    REQUIRE(strstr(dlerror(), "no_such_library.so") != NULL);
}

/* In a name space of its own the C library's two halves stay together, and dlopen in it, by the
 * caller's address, too. */
static void check_name_space(const char *caller_path)
{
    Lmid_t space, inner;
    void *caller = dlmopen(LM_ID_NEWLM, caller_path, RTLD_NOW);
    if (caller == NULL)
        say(dlerror());
    REQUIRE(caller != NULL && dlinfo(caller, RTLD_DI_LMID, &space) == 0 && space != LM_ID_BASE);
    void *handle = caller_of(caller)("libruntime_deepbind_lib.so", RTLD_NOW | RTLD_DEEPBIND);
    struct library library = look_up(handle);
    REQUIRE(dlinfo(handle, RTLD_DI_LMID, &inner) == 0 && inner == space);
    void *(*space_malloc)(size_t);
    find(handle, &space_malloc, "malloc");
    REQUIRE((uintptr_t)library.malloc() == (uintptr_t)space_malloc);
    REQUIRE(library.malloc() != own_malloc() && library.whose() == 2);
    library.release(library.resize(library.make(100), 100000));
    REQUIRE(dlclose(handle) == 0 && dlclose(caller) == 0);
}

/* The libraries that were preloaded, or linked, by name. */
static void *preloaded(const char *file)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    if (handle == NULL)
        say(dlerror());
    REQUIRE(handle != NULL);
    return handle;
}

static void check(const char *how, const char *path, const char *other)
{
    if (strcmp(how, "opened") == 0) {
        open_function *open;
        find(dlopen(other, RTLD_NOW), &open, "dlopen");
        struct library library = look_up(open(path, RTLD_NOW | RTLD_DEEPBIND));
        REQUIRE(library.malloc() == own_malloc());
        check_kept(&library);
        return;
    }
    struct library library = look_up(dlopen(path, RTLD_NOW | RTLD_DEEPBIND));
    if (strcmp(how, "kept") == 0) {
        REQUIRE(library.malloc() != own_malloc());
        check_kept(&library);
        return;
    }
    check_cleared(&library);
    if (strcmp(how, "early") == 0) {
        void *(*early)(void);
        find(preloaded(other), &early, "caller_early");
        REQUIRE(early() == library.handle);
    }
    REQUIRE(dlclose(library.handle) == 0);
    if (strcmp(how, "between") == 0) {
        int *calls = dlsym(preloaded(other), "between_calls");
        REQUIRE(calls != NULL && *calls >= 2);
    }
    if (strcmp(how, "cleared") == 0) {
        check_caller(dlopen(other, RTLD_NOW));
        check_name_space(other);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        say("usage: runtime_deepbind cleared|early|kept|between|opened LIBRARY OTHER\n");
        return 2;
    }
    watchdog(HANG_SECONDS, "libraries opened with RTLD_DEEPBIND");
    check(argv[1], argv[2], argv[3]);
    return 0;
}
