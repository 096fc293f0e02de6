/* See policy.h: the values of the balanced preset, until options are read. */
#include "base/policy.h"

struct policy policy = {
#define OPTION(name, unit, words, settable, min, max, speed, balanced, lean, hardened, help)       \
    .name = balanced,
#include "base/options.def"
#undef OPTION
};
