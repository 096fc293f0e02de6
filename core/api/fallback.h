/* The C library's own allocator, for HAKMEM_FALLBACK=libc: it then serves the same binary.
 *
 * Blocks that hakmem handed out before the option was read stay its own: the callers here ask the
 * page map first.
 */
#ifndef API_FALLBACK_H
#define API_FALLBACK_H

#include "base/macros.h"

/* Looks the C library's functions up; false: they cannot be found (static linking). For the
 * library's constructor only. */
bool fallback_init(void);

void *libc_alloc(size_t size, size_t alignment, bool zero);
void *libc_realloc(void *block, size_t size);
void libc_free(void *block);
size_t libc_usable_size(const void *block);

/* Calls passed on so far; counted only if an option asks for statistics. */
uint64_t fallback_calls(void);

#endif
