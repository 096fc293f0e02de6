/* The dynamic linker. Functions are found by name at run time: because linkers warn of static
 * programs that use them, because they may be absent, or because the next definition behind ours is
 * meant. */
#ifndef OS_SYMBOL_H
#define OS_SYMBOL_H

#include <stdbool.h>

/* Sets `function`, a pointer to a pointer to a function, to the one that `library`, a handle of
 * dlopen, RTLD_DEFAULT or RTLD_NEXT, has under `name`; to NULL if there is none, as in a statically
 * linked program. True: there is one. Calls the dynamic linker, which may call malloc: the caller
 * holds no lock. Any thread. */
bool symbol_find(void *library, void *function, const char *name);

/* Sees to it that dlclose does not unmap the shared object that this code was linked into: threads
 * call it at their ends, and signals, and blocks outlive any handle. For the constructor. */
void symbol_stay_loaded(void);

#endif
