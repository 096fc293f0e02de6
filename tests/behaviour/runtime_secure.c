/* Tells a runner what effect options in the environment had (behaviour 29).
 *
 * Prints one line: secure=0|1 preset=N libc_calls=N, where N of the preset is its position among
 * the words that the option takes.
 */
#include "runtime_support.h"

#include <stdio.h>
#include <sys/auxv.h>

#include <hakmem/hakmem.h>

int main(void)
{
    long preset = -1;
    struct hakmem_stats stats;
    (void)hakmem_version();
    for (unsigned i = 0; i < 1000; i++) {
        free(malloc(i));
    }
    if (hakmem_option_get("preset", &preset) != 0) {
        say("runtime_secure: there is no option called preset\n");
        return 2;
    }
    hakmem_get_stats(&stats, sizeof stats);
    printf(
        "secure=%lu preset=%ld libc_calls=%llu\n", getauxval(AT_SECURE), preset,
        (unsigned long long)stats.libc_calls);
    return 0;
}
