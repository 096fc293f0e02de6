/* Purging before memory grows: see tick.h. The function that layers below call is declared in
 * base/pressure.h. */
#ifndef RECLAIM_GROWTH_H
#define RECLAIM_GROWTH_H

#include "base/macros.h"

/* True if memory was mapped since the last call, at a time when the purge was armed. */
bool growth_has_come(void);

#endif
