/* Blocks that are freed as the program closed them: with pages that nobody may read, or that
 * another thread has to give first, by userfaultfd. To free one is to end its use, and not to look
 * at it.
 *
 * usage: closed SIZE STEP rights|marks|watched
 *
 * rights, marks: each STEP bytes a page is closed by mprotect, or by MADV_GUARD_INSTALL.
 * watched: all missing pages have to be given, but nobody gives them.
 */
#include "hostile.h"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

static void watch_pages(char *block, size_t size)
{
    int file = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    if (file < 0 || ioctl(file, UFFDIO_API, &api) != 0) {
        skip("no userfaultfd");
    }
    struct uffdio_register watched = {
        .range = {(uintptr_t)block, size}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    REQUIRE(ioctl(file, UFFDIO_REGISTER, &watched) == 0);
    static char page[65536] __attribute__((aligned(65536))) = {1};
    size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < size / 2; at += page_size) {
        struct uffdio_copy copy = {
            .dst = (uintptr_t)block + at, .src = (uintptr_t)page, .len = page_size};
        REQUIRE(ioctl(file, UFFDIO_COPY, &copy) == 0);
    }
}

int main(int argc, char **argv)
{
    size_t size = argument(argc, argv, 1), step = argument(argc, argv, 2);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = NULL;
    REQUIRE(argc == 4 && posix_memalign(&memory, page, size) == 0);
    char *block = memory;
    if (argv[3][0] == 'w') {
        watch_pages(block, size);
    }
    for (size_t at = 0; at < size && argv[3][0] != 'w'; at += step) {
        block[at + step - 1] = 1;
        if (argv[3][0] == 'r') {
            REQUIRE(mprotect(block + at, page, PROT_NONE) == 0);
        } else if (madvise(block + at, page, MADV_GUARD_INSTALL) != 0) {
            skip("no marks of guard pages");
        }
    }
    free(block);
    conclude();
    _exit(0);
}
