/* Lists of names that programs ask other allocators for, in which a # stands for any number. */
#ifndef COMPAT_NAMES_H
#define COMPAT_NAMES_H

#include "base/macros.h"

/* The index of the name in the list, and the number in it, if there is one; -1: it is not listed,
 * or NULL. Each name of the list ends with a NUL, and the last with two. */
int names_find(const char *list, const char *name, size_t *number);

/* The name of that index; NULL: the list is shorter. */
const char *names_at(const char *list, size_t index);

#endif
