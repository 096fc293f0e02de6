/* Exports names. */
#ifndef OVERRIDE_OVERRIDE_H
#define OVERRIDE_OVERRIDE_H

/* Callers have the C library's or the C++ compiler's declarations, or none. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT __attribute__((visibility("default")))

/* A second name for a function of this file, without a jump between them. */
#if defined(__clang__)
#define ALIAS_OF(name) __attribute__((alias(#name)))
#else
#define ALIAS_OF(name) __attribute__((alias(#name), copy(name)))
#endif

#endif
