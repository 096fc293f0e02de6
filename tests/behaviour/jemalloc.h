/* jemalloc's own calls, as its header declares them. */
#ifndef JEMALLOC_H
#define JEMALLOC_H

#include <stddef.h>

extern void *mallocx(size_t size, int flags);
extern void *rallocx(void *block, size_t size, int flags);
extern size_t xallocx(void *block, size_t size, size_t extra, int flags);
extern size_t sallocx(const void *block, int flags);
extern void dallocx(void *block, int flags);
extern void sdallocx(void *block, size_t size, int flags);
extern size_t nallocx(size_t size, int flags);

extern int mallctl(const char *name, void *old, size_t *old_length, void *new, size_t new_length);
extern int mallctlnametomib(const char *name, size_t *mib, size_t *length);
extern int mallctlbymib(
    const size_t *mib, size_t length, void *old, size_t *old_length, void *new, size_t new_length);

extern void malloc_stats_print(
    void (*write)(void *argument, const char *text), void *argument, const char *options);

#define MALLOCX_LG_ALIGN(power) ((int)(power))
#define MALLOCX_ALIGN(alignment) (__builtin_ctzll(alignment))
#define MALLOCX_ZERO 0x40
#define MALLOCX_TCACHE(index) (((index) + 2) << 8)
#define MALLOCX_TCACHE_NONE MALLOCX_TCACHE(-1)
#define MALLOCX_ARENA(index) (((index) + 1) << 20)

#endif
