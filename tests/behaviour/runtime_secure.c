/* Tells a runner what effect options in the environment had (behaviour 29).
 *
 * Prints one line: secure=0|1 preset=N fallback=N stats=N, each option as hakmem_option_get()
 * reports it.
 */
#include "runtime_support.h"

#include <stdio.h>
#include <sys/auxv.h>

#include <hakmem/hakmem.h>

static long option_value(const char *name)
{
    long value = -1;
    REQUIRE(hakmem_option_get(name, &value) == 0);
    return value;
}

int main(void)
{
    (void)hakmem_version();
    for (unsigned i = 0; i < 1000; i++) {
        free(malloc(i));
    }
    printf(
        "secure=%lu preset=%ld fallback=%ld stats=%ld\n", getauxval(AT_SECURE),
        option_value("preset"), option_value("fallback"), option_value("stats"));
    return 0;
}
