/* Takes the place of core/os/syscall.h: the pause of a spin loop. */
#ifndef OS_SYSCALL_H
#define OS_SYSCALL_H

#include "engine/model.h"

/* The lock spins a bounded time before it sleeps. All rounds are alike: one stands for them. */
#if MODEL_SPINS_ONCE
#define cpu_relax() break
#else
#define cpu_relax() model_yield()
#endif

#endif
