/* The first free left the block in the cache of a thread that a child of fork does not have. The
 * child forgets that cache, in which anything may be half done: there the block is in use, and the
 * child's free is its first.
 *
 * tiny: not caught
 * mid, large, big: at once
 *     hakmem: free(): double free of BAD
 * hardened tiny: at once
 *     hakmem: free(): double free of BAD
 */
#include "misuse.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

void misuse(size_t size)
{
    struct helper helper;
    helper_start(&helper);
    void *block = new_victim(size);
    helper_free(&helper, block);
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
    helper_end(&helper);
}
