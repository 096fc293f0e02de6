/* What is found by its name as the program runs: because linkers warn of static programs that name
 * it, because it may be absent, or because the one after ours is meant.
 */
#ifndef OS_SYMBOL_H
#define OS_SYMBOL_H

#include <stdbool.h>

/* Sets `function`, a pointer to a pointer to a function, to what `library`, a handle of dlopen,
 * RTLD_DEFAULT or RTLD_NEXT, has under `name`; to NULL where there is nothing, as in a statically
 * linked program. True: there is. Calls the dynamic linker, which may call malloc: with no lock
 * held. Any thread. */
bool symbol_find(void *library, void *function, const char *name);

#endif
