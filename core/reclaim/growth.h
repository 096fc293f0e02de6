/* Growth is paid for: free memory goes before more is mapped, and for what is taken. The functions
 * that layers below call are declared in base/pressure.h. */
#ifndef RECLAIM_GROWTH_H
#define RECLAIM_GROWTH_H

#include "base/macros.h"

/* Atomic relaxed, any thread: memory was mapped while the purge was armed. The engine takes note by
 * a round of bins, and sets it to false. */
extern bool growth_has_come;

/* Called when a round of the engine begins: what is resident now is the height from which on free
 * memory goes for what is taken. */
void growth_begin_round(void);

#endif
