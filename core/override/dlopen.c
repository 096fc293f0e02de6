/* dlopen, for libraries that are opened with RTLD_DEEPBIND, as PHP opens its extensions.
 *
 * Such a library finds a function in the C library before it finds that of the program, and so it
 * would call another malloc than the one whose blocks it frees. Here the flag is cleared. The C
 * library does the rest; it tells by the return address who calls, and so in which name space and
 * by which RUNPATH to search: dlopen has to end in a jump, and that is why it takes no address of a
 * variable of its own. Only in the shared library: a static program has no other dlopen behind. A
 * name space of dlmopen has a C library of its own, whose malloc and dlopen belong together.
 */
#include <dlfcn.h>

#include "api/environment.h"
#include "base/policy.h"
#include "os/symbol.h"
#include "override/override.h"

typedef void *open_function(const char *file, int mode);

/* Older compilers jump when they optimise, as this file is built. */
#if __has_attribute(musttail)
#define JUMP __attribute__((musttail))
#else
#define JUMP
#endif

/* Searched each time, which is little beside opening a library: there is nothing to keep, to set up
 * or to wait for. If there is none, dlerror says so. */
static __attribute__((noinline)) open_function *next_dlopen(void)
{
    open_function *next;
    symbol_find(RTLD_NEXT, &next, "dlopen");
    return next;
}

EXPORT void *dlopen(const char *file, int mode)
{
    open_function *next = next_dlopen();
    if (override_serves() && !POLICY(deepbind))
        mode &= ~RTLD_DEEPBIND;
    if (!next)
        return NULL;
    JUMP return next(file, mode);
}
