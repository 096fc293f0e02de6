/* See policy.h: the values of the preset that is the default of this build, until options are read.
 */
#include "base/policy.h"

/* The number of the preset among those of the table. */
#define DEFAULT(speed, balanced, lean, hardened)                                                   \
    (HAKMEM_DEFAULT_PRESET == 0   ? (speed)                                                        \
     : HAKMEM_DEFAULT_PRESET == 1 ? (balanced)                                                     \
     : HAKMEM_DEFAULT_PRESET == 2 ? (lean)                                                         \
                                  : (hardened))

struct policy policy = {
#define OPTION(name, unit, words, settable, min, max, speed, balanced, lean, hardened, help)       \
    .name = DEFAULT(speed, balanced, lean, hardened),
#include "base/options.def"
#undef OPTION
};
