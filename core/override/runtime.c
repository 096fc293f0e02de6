/* See runtime.h. */
#include "override/runtime.h"

#include <dlfcn.h>

#include "os/fatal.h"
#include "os/symbol.h"

/* std::get_new_handler() and std::__throw_bad_alloc(), present in libstdc++ and libc++. */
extern new_handler _ZSt15get_new_handlerv(void) __attribute__((weak));
extern void _ZSt17__throw_bad_allocv(void) __attribute__((weak));

/* Sets `function` to the function `name` of a C++ library that was missing when this one was
 * loaded: a C program has opened a library in C++ since, and only that library sees it. So the
 * library that calls new is searched, and those it depends on. False: it is not there; `function`
 * is unchanged, or NULL. Nothing is kept, since libraries may be closed. dlopen is found by name:
 * linkers warn of static programs that use it. */
static SLOW_PATH bool find_for(const void *caller, void *function, const char *name)
{
    void *(*open)(const char *, int);
    int (*close)(void *), (*ask)(const void *, Dl_info *);
    Dl_info info = {0};
    bool found = false;
    if (!symbol_find(RTLD_DEFAULT, &open, "dlopen") ||
        !symbol_find(RTLD_DEFAULT, &close, "dlclose") || !symbol_find(RTLD_DEFAULT, &ask, "dladdr"))
        return false;
    const char *file = ask(caller, &info) ? info.dli_fname : NULL;
    const char *const files[] = {file, "libstdc++.so.6", "libc++.so.1"};
    for (unsigned i = 0; !found && i < ARRAY_LENGTH(files); i++) {
        void *library = open(files[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!library)
            continue;
        found = symbol_find(library, function, name);
        close(library);
    }
    return found;
}

SLOW_PATH new_handler runtime_handler(const void *caller)
{
    new_handler (*get)(void) = _ZSt15get_new_handlerv;
    if (!get)
        find_for(caller, &get, "_ZSt15get_new_handlerv");
    return get ? get() : NULL;
}

_Noreturn SLOW_PATH void runtime_throw_bad_alloc(const void *caller, const char *why)
{
    void (*throw)(void) = _ZSt17__throw_bad_allocv;
    if (!throw)
        find_for(caller, &throw, "_ZSt17__throw_bad_allocv");
    if (throw)
        throw();
    fatal(why);
}

SLOW_PATH void *runtime_nothrow(const char *name)
{
    void *next;
    int (*ask)(const void *, Dl_info *);
    Dl_info found = {0}, library = {0};
    if (!_ZSt15get_new_handlerv || !_ZSt15get_new_handlerv())
        return NULL;
    bool same = symbol_find(RTLD_NEXT, &next, name) && symbol_find(RTLD_DEFAULT, &ask, "dladdr") &&
                ask(next, &found) &&
                ask((const void *)(uintptr_t)_ZSt15get_new_handlerv, &library) &&
                found.dli_fbase == library.dli_fbase;
    return same ? next : NULL;
}
