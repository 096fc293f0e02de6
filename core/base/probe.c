/* The semaphores of probe.h. Observers find them by the notes; `used` keeps them, though no code
 * here writes them. */
#include "base/probe.h"

#define SEMAPHORE(name)                                                                            \
    __attribute__((used, section(".probes"))) uint16_t otel_memory_##name##_semaphore

SEMAPHORE(alloc);
SEMAPHORE(free);
SEMAPHORE(mmap);
SEMAPHORE(munmap);
