/* See runtime.h. */
#include "override/runtime.h"

#include <dlfcn.h>

#include "os/fatal.h"

/* std::get_new_handler() and std::__throw_bad_alloc(), present in libstdc++ and libc++. */
extern new_handler _ZSt15get_new_handlerv(void) __attribute__((weak));
extern void _ZSt17__throw_bad_allocv(void) __attribute__((weak));

/* Absent from statically linked programs. */
#pragma weak dlsym

/* What is called `name` in the C++ library, of which nobody knew when this one was loaded: a C
 * program has opened a library in C++ since, and that one alone sees it. So it is looked for where
 * new is called, and in what that depends on. NULL: it is not there. Nothing is kept: libraries may
 * be closed. dlopen is found by name: linkers warn of programs that have it and are static. */
static SLOW_PATH void *find_for(const void *caller, const char *name)
{
    void *(*open)(const char *, int) = NULL, *found = NULL;
    int (*close)(void *) = NULL, (*ask)(const void *, Dl_info *) = NULL;
    Dl_info info = {0};
    if (!dlsym)
        return NULL;
    *(void **)&open = dlsym(RTLD_DEFAULT, "dlopen");
    *(void **)&close = dlsym(RTLD_DEFAULT, "dlclose");
    *(void **)&ask = dlsym(RTLD_DEFAULT, "dladdr");
    if (!open || !close || !ask)
        return NULL;
    const char *file = ask(caller, &info) ? info.dli_fname : NULL;
    const char *const files[] = {file, "libstdc++.so.6", "libc++.so.1"};
    for (unsigned i = 0; !found && i < ARRAY_LENGTH(files); i++) {
        void *library = open(files[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!library)
            continue;
        found = dlsym(library, name);
        close(library);
    }
    return found;
}

SLOW_PATH new_handler runtime_handler(const void *caller)
{
    new_handler (*get)(void) = _ZSt15get_new_handlerv;
    if (!get)
        *(void **)&get = find_for(caller, "_ZSt15get_new_handlerv");
    return get ? get() : NULL;
}

_Noreturn SLOW_PATH void runtime_throw_bad_alloc(const void *caller, const char *why)
{
    void (*throw)(void) = _ZSt17__throw_bad_allocv;
    if (!throw)
        *(void **)&throw = find_for(caller, "_ZSt17__throw_bad_allocv");
    if (throw)
        throw();
    fatal(why);
}

SLOW_PATH void *runtime_nothrow(const char *name)
{
    int (*ask)(const void *, Dl_info *) = NULL;
    Dl_info found = {0}, library = {0};
    if (!_ZSt15get_new_handlerv || !dlsym || !_ZSt15get_new_handlerv())
        return NULL;
    void *next = dlsym(RTLD_NEXT, name);
    *(void **)&ask = dlsym(RTLD_DEFAULT, "dladdr");
    bool same = next && ask && ask(next, &found) &&
                ask((const void *)(uintptr_t)_ZSt15get_new_handlerv, &library) &&
                found.dli_fbase == library.dli_fbase;
    return same ? next : NULL;
}
