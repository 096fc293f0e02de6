/* The processor's clock, which costs some 20 instructions to read, and its ticks in nanoseconds. */
#ifndef OS_TICKS_H
#define OS_TICKS_H

#include "base/macros.h"

/* Begins to measure the rate; later calls do nothing. */
void ticks_start(void);

/* Ticks in nanoseconds, by the rate since ticks_start. */
uint64_t ticks_ns(uint64_t ticks);

#endif
