/* The calls by which memory goes, which others may watch.
 *
 * Libraries that register memory with a device (MPI, RDMA, GPUs) learn that it goes from jumps that
 * they write over the first instructions of the C library's functions. Such a function is called in
 * place of the system. One that is as it was at the start is not: it may be another preloaded
 * library's, which allocates or takes a lock of its own, and which the C library's malloc does not
 * call either.
 */
#ifndef OS_WATCHED_H
#define OS_WATCHED_H

#include <stddef.h>

/* As the system calls, by the C library's functions if these are watched; -EPERM in a thread that
 * the C library does not know. */
long watched_munmap(void *address, size_t size);
long watched_madvise(void *address, size_t size, int advice);

/* The same; not for such a thread. */
long watched_mremap(void *address, size_t old_size, size_t new_size, int flags, void *target);

#endif
