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

/* The C++ library's nothrow form of new, for a program with a new_handler, whose exceptions C
 * cannot catch. It calls the throwing form. NULL: there is no handler, or the next nothrow form is
 * not the C++ library's, but perhaps another malloc's, or there is none, as in static programs. */
SLOW_PATH void *runtime_nothrow(const char *name);

#endif
