/* Under a limit a program allocates until it is refused. It must get most of what the limit allows,
 * be told NULL, and get as much again after freeing.
 *
 * usage: limit data|locked LIMIT_MIB SIZE
 *
 *     data     RLIMIT_DATA, which counts private writable memory
 *     locked   RLIMIT_MEMLOCK, in a program without privileges that locks all its memory
 *
 * figures: first_mib, second_mib   what it got before it was refused, each time
 */
#include "hostile.h"

struct link {
    struct link *next;
};

static double fill_and_free(size_t size)
{
    struct link *first = NULL;
    size_t bytes = 0;
    for (;;) {
        struct link *link = malloc(size);
        if (!link) {
            break;
        }
        link->next = first;
        first = link;
        bytes += size;
    }
    while (first) {
        struct link *next = first->next;
        free(first);
        first = next;
    }
    return (double)bytes / (double)MIB;
}

static void lock_all(const struct rlimit *limit)
{
    enum { NOBODY = 65534 };
    if (setrlimit(RLIMIT_MEMLOCK, limit) != 0) {
        skip("the system allows less locked memory");
    }
    if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0) {
        skip("the program cannot give up its privileges");
    }
    REQUIRE(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
}

int main(int argc, char **argv)
{
    size_t limit_mib = argument(argc, argv, 2), size = argument(argc, argv, 3);
    const struct rlimit limit = {limit_mib * MIB, limit_mib * MIB};
    free(allocate(100));
    if (strcmp(argv[1], "locked") == 0) {
        lock_all(&limit);
    } else {
        REQUIRE(setrlimit(RLIMIT_DATA, &limit) == 0);
    }
    figure("first_mib", fill_and_free(size));
    figure("second_mib", fill_and_free(size));
    conclude();
    return 0;
}
