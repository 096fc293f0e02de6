/* See policy.h. Until options are read, the values are those of this build's default preset. */
#include "base/policy.h"

/* Picks the default preset's column of the table. */
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
