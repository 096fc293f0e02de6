/* The processor's clock, which costs some 20 instructions to read, and its ticks in nanoseconds. */
#ifndef OS_TICKS_H
#define OS_TICKS_H

#include "base/macros.h"

/* From here on the rate is measured. The first call counts. */
void ticks_start(void);

/* So many ticks in nanoseconds, as far as one can know by now. */
uint64_t ticks_ns(uint64_t ticks);

#endif
