/* Purging before memory grows: see engine.h. The function that layers below call is declared in
 * base/pressure.h. */
#ifndef RECLAIM_GROWTH_H
#define RECLAIM_GROWTH_H

#include "base/macros.h"

/* True if memory was mapped since the last time that it was taken, when the purge was armed. */
bool growth_has_come(bool take);

/* Called when a round of the engine begins: what is resident now is the height from which on free
 * memory goes for what is taken. */
void growth_begin_round(void);

#endif
