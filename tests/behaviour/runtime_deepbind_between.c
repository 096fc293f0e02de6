/* A library before or behind the allocator that has a dlopen of its own. See runtime_deepbind.c. */
#include <dlfcn.h>
#include <string.h>

int between_calls;

void *dlopen(const char *file, int mode)
{
    void *(*next)(const char *, int);
    void *found = dlsym(RTLD_NEXT, "dlopen");
    memcpy((void *)&next, &found, sizeof next);
    between_calls++;
    return next(file, mode);
}
