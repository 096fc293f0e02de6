/* The parts of the C++ library that the operators need when there is no memory. */
#ifndef OVERRIDE_RUNTIME_H
#define OVERRIDE_RUNTIME_H

#include "base/macros.h"

typedef void (*new_handler)(void);

/* The new_handler for a caller of new at that address, or NULL. */
SLOW_PATH new_handler runtime_handler(const void *caller);

/* Throws bad_alloc to the caller of new at that address; without a C++ library it ends the program,
 * and says why. */
_Noreturn SLOW_PATH void runtime_throw_bad_alloc(const void *caller, const char *why);

/* A nothrow new must not let the exception of a new_handler out, but C cannot catch it: so where
 * there is a handler, the C++ library's nothrow form is called, which calls the throwing one. It
 * has to come next: that of another malloc has blocks of its own. Else, and where there is none, as
 * in static programs, NULL: there is no memory. */
SLOW_PATH void *runtime_nothrow(const char *name);

#endif
