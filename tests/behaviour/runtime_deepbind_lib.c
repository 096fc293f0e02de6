/* A library that is opened with RTLD_DEEPBIND, as PHP's extensions are: what it calls, and blocks
 * that come from it and go to it. See runtime_deepbind.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *lib_make(size_t size)
{
    return malloc(size);
}

void *lib_resize(void *block, size_t size)
{
    return realloc(block, size);
}

void lib_release(void *block)
{
    free(block);
}

/* From inside the C library. */
char *lib_print(int number)
{
    char *text = NULL;
    return asprintf(&text, "number %d", number) > 0 ? text : NULL;
}

/* Which malloc it calls. */
void *lib_malloc(void)
{
    void *(*volatile function)(size_t) = malloc;
    void *address;
    memcpy(&address, (void *)&function, sizeof address);
    return address;
}

/* The program has one, too: RTLD_DEEPBIND lets the library find its own. */
int runtime_whose(void)
{
    return 2;
}

int lib_whose(void)
{
    return runtime_whose();
}
