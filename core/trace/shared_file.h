/* Files that are written through memory.
 *
 * If the disk is full, a write to a shared mapping of a file's hole ends the program (SIGBUS). So
 * the blocks of a file are allocated before they are mapped.
 *
 * Nothing here changes errno, is a cancellation point or calls malloc.
 */
#ifndef TRACE_SHARED_FILE_H
#define TRACE_SHARED_FILE_H

#include "os/os.h"

/* What an error number of these calls means, for a message. 0 is no failure. */
const char *shared_file_reason(int failure);

/* Creates a file of the user's own, whose descriptor exec closes. -1, and the reason: it cannot. */
int shared_file_create(const char *path, int *failure);

/* Opens the file of this identity and path. -1, and the reason: it cannot. */
int shared_file_open(const char *path, struct os_file identity, int *failure);

void shared_file_remove(const char *path);

/* Allocates blocks for the range of the file, which read as zero. Not even the limit on the size of
 * files ends the program. */
int shared_file_allocate(int fd, size_t offset, size_t size);

/* Maps the range over what is mapped at `address`. False: the former mapping is still there. */
bool shared_file_map(int fd, size_t offset, size_t size, void *address);

#endif
