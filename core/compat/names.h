/* Lists of names that programs ask other allocators for, in which a # stands for any number. */
#ifndef COMPAT_NAMES_H
#define COMPAT_NAMES_H

#include "base/macros.h"

/* Which of the names it is, counted from 0, and the number in it, if there is one; -1: none. Each
 * name of the list ends with a NUL, and the last with two. NULL is no name. */
int names_find(const char *list, const char *name, size_t *number);

/* The name of that index; NULL: the list is shorter. */
const char *names_at(const char *list, size_t index);

#endif
