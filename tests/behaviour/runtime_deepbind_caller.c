/* Opens libraries that only its own RUNPATH leads to: the caller of dlopen has to stay who it was.
 * See runtime_deepbind.c.
 */
#include <dlfcn.h>
#include <stdlib.h>

static void *opened_early;

/* Before the constructor of the allocator, if this library was preloaded. */
__attribute__((constructor)) static void open_early(void)
{
    if (getenv("RUNTIME_DEEPBIND_EARLY") != NULL)
        opened_early = dlopen("libruntime_deepbind_lib.so", RTLD_NOW | RTLD_DEEPBIND);
}

void *caller_early(void)
{
    return opened_early;
}

/* Not as its last act, else the caller would be somebody else. */
void *caller_open(const char *file, int mode)
{
    void *volatile handle = dlopen(file, mode);
    return handle;
}
