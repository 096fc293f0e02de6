// Proves from the inside that a preloaded library serves a C and C++ program.
//
//   LD_PRELOAD=LIBRARY prove LIBRARY
//
// Checks that the entry points resolve into LIBRARY, that blocks of all kinds and sizes are
// aligned, apart and keep their contents, also when other threads free them and in a forked
// child, that a request too large fails as the standards say, and that the C library's own malloc
// handed out nothing meanwhile. Silent and 0 when all is well; otherwise says what failed and
// exits with 1.

#include <dlfcn.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kSizes[] = {1,    8,     16,    24,     100,     500,    1000,
                             4096, 10000, 32768, 100000, 1 << 20, 5 << 20};
constexpr size_t kThreads = 8;
constexpr size_t kBlocksPerThread = 20000;

void require(bool holds, const char *what, size_t detail = 0)
{
    if (!holds) {
        std::fprintf(stderr, "prove: %s (%zu)\n", what, detail);
        std::_Exit(1);
    }
}

bool is_aligned(const void *block, size_t alignment)
{
    return reinterpret_cast<uintptr_t>(block) % alignment == 0;
}

std::string real_path(const char *path)
{
    char resolved[PATH_MAX];
    return realpath(path, resolved) ? resolved : "";
}

// The library that the dynamic linker chose for `name`.
void check_owner(const char *name, const std::string &library)
{
    Dl_info info = {};
    void *address = dlsym(RTLD_DEFAULT, name);
    if (!address || !dladdr(address, &info) || real_path(info.dli_fname) != library) {
        std::fprintf(
            stderr, "prove: %s resolves into %s\n", name,
            info.dli_fname ? info.dli_fname : "nothing");
        std::_Exit(1);
    }
}

// Fills a block so that any two that overlap, or one that is cut short, show.
void fill(void *block, size_t size, size_t seed)
{
    std::memset(block, static_cast<int>(seed % 251), size);
}

void check_filled(const void *block, size_t size, size_t seed)
{
    const auto *bytes = static_cast<const unsigned char *>(block);
    for (size_t index = 0; index < size; index++)
        require(bytes[index] == seed % 251, "a block lost its contents", size);
}

void check_plain_blocks()
{
    std::vector<void *> blocks;
    for (size_t size : kSizes) {
        void *block = malloc(size);
        require(block && is_aligned(block, size < 16 ? 8 : 16), "malloc", size);
        require(malloc_usable_size(block) >= size, "malloc_usable_size", size);
        fill(block, size, size);
        blocks.push_back(block);
    }
    for (size_t index = 0; index < blocks.size(); index++) {
        size_t size = kSizes[index];
        check_filled(blocks[index], size, size);
        blocks[index] = realloc(blocks[index], size * 2);
        require(blocks[index], "realloc", size * 2);
        check_filled(blocks[index], size, size);
        free(blocks[index]);
    }
    for (size_t size : kSizes) {
        // Dirty memory first, which calloc may be given again.
        void *dirty = malloc(size);
        fill(dirty, size, 1);
        free(dirty);
        void *block = calloc(1, size);
        require(block, "calloc", size);
        check_filled(block, size, 0);
        free(block);
    }
    free(nullptr);
}

// Up to 32 KiB: rpmalloc serves only alignments below its span of 64 KiB.
void check_aligned_blocks()
{
    for (size_t alignment = 16; alignment <= 1 << 15; alignment *= 2) {
        for (size_t size : {alignment, alignment * 3}) {
            void *blocks[3] = {memalign(alignment, size), aligned_alloc(alignment, size), nullptr};
            require(posix_memalign(&blocks[2], alignment, size) == 0, "posix_memalign", alignment);
            for (void *block : blocks) {
                require(block && is_aligned(block, alignment), "an aligned block", alignment);
                fill(block, size, alignment);
            }
            for (void *block : blocks) {
                check_filled(block, size, alignment);
                free(block);
            }
        }
    }
}

struct alignas(256) Wide {
    char bytes[256];
};

void check_cpp_blocks()
{
    std::vector<std::string> words;
    for (size_t index = 0; index < 10000; index++)
        words.push_back(std::string(index % 300, 'x') + std::to_string(index));
    for (size_t index = 0; index < words.size(); index++)
        require(words[index].substr(index % 300) == std::to_string(index), "a string", index);

    Wide *wide = new Wide[3];
    require(is_aligned(wide, 256), "aligned new");
    delete[] wide;
    delete new (std::nothrow) int;
}

// Of malloc alone: some peers, as their authors build them, end the program in new or calloc.
void check_failure()
{
    volatile size_t too_large = PTRDIFF_MAX;
    errno = 0;
    require(malloc(too_large) == nullptr && errno == ENOMEM, "malloc of too much");
}

// Each thread allocates, and frees what its neighbour allocated.
void check_threads()
{
    std::vector<std::vector<void *>> blocks(kThreads, std::vector<void *>(kBlocksPerThread));
    auto size_of = [](size_t thread, size_t index) { return 1 + (thread * 37 + index * 13) % 600; };
    auto in_threads = [](auto work) {
        std::vector<std::thread> threads;
        for (size_t thread = 0; thread < kThreads; thread++)
            threads.emplace_back(work, thread);
        for (std::thread &thread : threads)
            thread.join();
    };
    for (int round = 0; round < 3; round++) {
        in_threads([&](size_t thread) {
            for (size_t index = 0; index < kBlocksPerThread; index++) {
                size_t size = size_of(thread, index);
                blocks[thread][index] = malloc(size);
                require(blocks[thread][index], "malloc in a thread", size);
                fill(blocks[thread][index], size, thread + index);
            }
        });
        in_threads([&](size_t thread) {
            size_t other = (thread + 1) % kThreads;
            for (size_t index = 0; index < kBlocksPerThread; index++) {
                check_filled(blocks[other][index], size_of(other, index), other + index);
                free(blocks[other][index]);
            }
        });
    }
}

void check_fork()
{
    pid_t child = fork();
    require(child >= 0, "fork");
    if (child == 0) {
        check_plain_blocks();
        std::_Exit(0);
    }
    int status = 0;
    require(waitpid(child, &status, 0) == child && status == 0, "a forked child", status);
}

// What the C library's own malloc holds; it must not change while another one serves.
size_t libc_bytes()
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    require(libc, "libc.so.6 is not in the process");
    auto info = reinterpret_cast<struct mallinfo2 (*)()>(dlsym(libc, "mallinfo2"));
    require(info, "libc.so.6 has no mallinfo2");
    struct mallinfo2 now = info();
    dlclose(libc);
    return now.uordblks + now.hblkhd;
}

} // namespace

int main(int argc, char **argv)
{
    require(argc == 2, "usage: LD_PRELOAD=LIBRARY prove LIBRARY");
    const std::string library = real_path(argv[1]);
    for (const char *name :
         {"malloc", "calloc", "realloc", "free", "memalign", "aligned_alloc", "posix_memalign",
          "malloc_usable_size"})
        check_owner(name, library);

    // The first call makes the C library set up its heap.
    libc_bytes();
    size_t before = libc_bytes();
    std::vector<void *> witnesses;
    for (size_t size : kSizes)
        witnesses.push_back(malloc(size));
    require(libc_bytes() == before, "the C library's malloc serves the calls");
    for (void *witness : witnesses)
        free(witness);

    check_plain_blocks();
    check_aligned_blocks();
    check_cpp_blocks();
    check_failure();
    check_threads();
    check_fork();
    require(libc_bytes() == before, "the C library's malloc serves some of the calls");
    return 0;
}
