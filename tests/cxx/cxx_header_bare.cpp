/* Owns the proof that hakmem.hpp works in a program without exceptions and without run-time type
 * information, where even a test framework would be too much. The exit status is the line of the
 * first check that does not hold.
 */
#include <hakmem/hakmem.hpp>

#include <csignal>
#include <cstdint>
#include <memory_resource>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return __LINE__ % 256;                                                                 \
        }                                                                                          \
    } while (0)

/* Where nothing can be thrown, the program must end rather than go on with a null pointer. */
static bool ends_when_there_is_no_memory()
{
    pid_t child = fork();
    if (child == 0) {
        const rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        volatile std::size_t impossible = SIZE_MAX;
        hakmem::allocator<int> ints;
        int *volatile block = ints.allocate(impossible);
        (void)block;
        _exit(0);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT;
}

int main()
{
    hakmem::memory_resource first;
    hakmem::memory_resource second;
    CHECK(first.is_equal(first));
    CHECK(!first.is_equal(*std::pmr::null_memory_resource()));
    void *block = first.allocate(1000, 128);
    CHECK(hakmem_usable_size(block) >= 1000);
    second.deallocate(block, 1000, 128);

    std::vector<int, hakmem::allocator<int>> numbers(1000, 4);
    CHECK(hakmem_usable_size(numbers.data()) >= 4000);
    CHECK(hakmem::stats().mapped_bytes > 0);
    CHECK(ends_when_there_is_no_memory());
    return 0;
}
