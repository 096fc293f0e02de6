/* A file that was mapped and has been unmapped is freed.
 *
 * any: at once
 *     hakmem: free(): invalid pointer BAD: not allocated by hakmem
 */
#include "misuse.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

void misuse(size_t size)
{
    (void)size;
    int file = open("/proc/self/exe", O_RDONLY);
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    if (page == MAP_FAILED)
        broken("no mapping");
    close(file);
    munmap(page, 4096);
    free_foreign(page);
}
