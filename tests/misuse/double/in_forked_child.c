/* The second free comes in a child of fork: it has a copy of the heap, in which the block is free.
 *
 * all: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

void misuse(size_t size)
{
    void *block = new_victim(size);
    free(block);
    pid_t child = fork();
    if (child == 0) {
        free_wrongly(block);
        exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        broken("no child");
    if (WIFSIGNALED(status))
        raise(WTERMSIG(status));
}
