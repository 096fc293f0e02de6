/* The end of the program on misuse: one line on stderr that names the call, the pointer and the
 * defect, then abort. Nothing here allocates or takes a lock. */
#ifndef OS_FATAL_H
#define OS_FATAL_H

#include "base/macros.h"

/* The defect of a pointer that a caller gave us. */
enum defect {
    DEFECT_DOUBLE_FREE,
    DEFECT_WRITTEN,  /* after its free */
    DEFECT_STRAY,    /* written to before it was ever handed out */
    DEFECT_OVERFLOW, /* its end was written over */
    DEFECT_UNDERFLOW,
    DEFECT_FOREIGN,
    DEFECT_LIBC, /* foreign, and of the C library's malloc, it seems */
    DEFECT_INTERIOR,
    DEFECT_MISALIGNED
};

/* `call`: the name of the API function, e.g. "free". For DEFECT_INTERIOR, `base` and `size` give
 * the block that the pointer lies in. */
_Noreturn SLOW_PATH void fatal_pointer(
    const char *call, enum defect defect, const void *pointer, const void *base, size_t size);

/* The block was made by a function of another kind, `maker`; or with another size or alignment,
 * `made`, than the call was told: the `mistake`. */
_Noreturn SLOW_PATH void fatal_maker(const char *call, const void *pointer, const char *maker);
_Noreturn SLOW_PATH void fatal_told(
    const char *call, const char *mistake, size_t told, const void *pointer, size_t made);

/* The pointer is a scope, or is wrong `in_what` of a scope, as ": in ", which has that name; `what`
 * says how, as "double free of". */
_Noreturn SLOW_PATH void fatal_scope(
    const char *call, const char *what, const void *pointer, const char *in_what, const char *name);

/* The line that is printed; `pointer` is the misused pointer, or NULL. */
struct fatal_line {
    const char *text;
    size_t length;
    const void *pointer;
};

/* "hakmem: <message>", then abort. */
_Noreturn SLOW_PATH void fatal(const char *message);

#endif
