/* The policy: every tunable that the paths read, in one struct; options.def explains each.
 *
 * Mechanism reads it and never writes it. Only cold code replaces values: the option parser at the
 * start and hakmem_option_set later (api/options.c), one word at a time; readers use relaxed loads
 * and may act on the old value once more, which is harmless for each of them.
 */
#ifndef BASE_POLICY_H
#define BASE_POLICY_H

#include "base/atomic.h"
#include "base/macros.h"

struct policy {
#define OPTION(name, ...) long name;
#include "base/options.def"
#undef OPTION
};

extern struct policy policy;

#define POLICY(field) ATOMIC_LOAD_RELAXED(&policy.field)

#endif
