/* The semaphores of probe.h. Observers find them by the notes, so that they stay even where the
 * compiler sees nobody write them. */
#include "base/probe.h"

#define SEMAPHORE(name)                                                                            \
    __attribute__((used, section(".probes"))) uint16_t otel_memory_##name##_semaphore

SEMAPHORE(alloc);
SEMAPHORE(free);
SEMAPHORE(mmap);
SEMAPHORE(munmap);
