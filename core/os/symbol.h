/* Functions that are found by name as the program runs: because linkers warn of static programs
 * that name them, because they may be absent, or because the one behind ours is meant.
 */
#ifndef OS_SYMBOL_H
#define OS_SYMBOL_H

#include <stdbool.h>

/* Sets `function`, a pointer to a pointer to a function, to the one that `library`, a handle of
 * dlopen, RTLD_DEFAULT or RTLD_NEXT, has under `name`; to NULL if there is none, as in a statically
 * linked program. True: there is one. Calls the dynamic linker, which may call malloc: with no lock
 * held. Any thread. */
bool symbol_find(void *library, void *function, const char *name);

#endif
