/* Tells a runner which options are in effect: the names that are its arguments, one `name=value`
 * each on one line, behind secure=0|1. */
#include "runtime_support.h"

#include <stdio.h>
#include <sys/auxv.h>

#include <hakmem/hakmem.h>

int main(int count, char **names)
{
    for (unsigned i = 0; i < 1000; i++) {
        free(malloc(i));
    }
    printf("secure=%lu", getauxval(AT_SECURE));
    for (int i = 1; i < count; i++) {
        long value = -1;
        REQUIRE(hakmem_option_get(names[i], &value) == 0);
        printf(" %s=%ld", names[i], value);
    }
    printf("\n");
    return 0;
}
