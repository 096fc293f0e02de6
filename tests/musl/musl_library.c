/* A library that musl_program opens: it allocates when it comes and when it goes, and has
 * thread-local variables, for which musl allocates. */
#include <stdlib.h>
#include <string.h>

static __thread char *kept;
static void *made_by_constructor;

__attribute__((constructor)) static void come(void)
{
    made_by_constructor = malloc(1000);
}

__attribute__((destructor)) static void go(void)
{
    free(made_by_constructor);
    free(malloc(5000));
}

void *library_block(void)
{
    free(kept);
    kept = strdup("kept");
    return malloc(300);
}
