/* Files that are written through memory.
 *
 * A shared mapping that lies on a hole of its file ends the program (SIGBUS) when it is written to
 * and the disk is full. So the blocks of a file are allocated before they are mapped.
 *
 * Nothing here changes errno, is a cancellation point or calls malloc.
 */
#ifndef TRACE_SHARED_FILE_H
#define TRACE_SHARED_FILE_H

#include "os/os.h"

/* Why something failed, as far as a user can do something about it. */
enum os_failure {
    OS_NO_FAILURE,
    OS_EXISTS,
    OS_NO_ACCESS,
    OS_NO_FOLDER,
    OS_NO_SPACE,
    OS_FILE_LIMIT,
    OS_NO_DESCRIPTOR,
    OS_NOT_THERE,
    OS_OTHER_FAILURE
};

/* For a message. */
const char *shared_file_reason(enum os_failure failure);

/* A new file of the user's own, which exec closes. -1, and the reason: it cannot be made. */
int shared_file_create(const char *path, enum os_failure *failure);

/* The file that has this identity and path. -1, and the reason. */
int shared_file_open(const char *path, struct os_file identity, enum os_failure *failure);

void shared_file_remove(const char *path);

/* Sees to it that the range of the file has blocks, which read as zero. Neither the limit on the
 * size of files nor anything else ends the program. */
enum os_failure shared_file_allocate(int fd, size_t offset, size_t size);

/* Maps the range over what is mapped at `address`. False: the former mapping is still there. */
bool shared_file_map(int fd, size_t offset, size_t size, void *address);

#endif
