// Blocks that pass between a program and a library that has operators of its own
// (operators_lib.cpp), in both directions and by all forms, are no mistake. What no such library
// can have done still ends the program, and so does all of it before the library is there.
//
// usage: hardened_operators LIBRARY
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <sys/wait.h>
#include <unistd.h>

static void *make(int kind, std::size_t size)
{
    switch (kind) {
    case 0:
        return ::operator new(size);
    case 1:
        return ::operator new(size, std::nothrow);
    case 2:
        return ::operator new[](size);
    default:
        return ::operator new(size, std::align_val_t(64));
    }
}

static void end(int kind, void *block, std::size_t size)
{
    switch (kind) {
    case 0:
        ::operator delete(block);
        break;
    case 1:
        ::operator delete(block, size);
        break;
    case 2:
        ::operator delete[](block);
        break;
    default:
        ::operator delete(block, size, std::align_val_t(64));
        break;
    }
}

// Hides a block's origin from the compiler, which would warn.
static void *hide(void *block)
{
    void *volatile hidden = block;
    return hidden;
}

static int failures;

// Whether the mistake ends a child by SIGABRT.
template <typename Mistake> static void expect(bool ends, const char *what, Mistake mistake)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (!std::freopen("/dev/null", "w", stderr))
            _exit(2);
        mistake();
        _exit(0);
    }
    waitpid(child, &status, 0);
    bool ended = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    if (ended != ends || (!ended && status != 0)) {
        std::printf("FAILED: %s: status %#x\n", what, status);
        failures++;
    }
}

int main(int, char **arguments)
{
    static const std::size_t sizes[] = {0, 1, 24, 1000, 5000, 40000, 3 << 20};
    auto frees_new = [] { std::free(hide(::operator new(24))); };
    auto deletes_malloc = [] { ::operator delete(hide(std::malloc(24))); };
    expect(true, "free of new, without the library", frees_new);
    expect(true, "delete of malloc, without the library", deletes_malloc);

    void *library = dlopen(arguments[1], RTLD_NOW);
    if (!library)
        return 2;
    auto lib_make = reinterpret_cast<void *(*)(int, std::size_t)>(dlsym(library, "lib_make"));
    auto lib_end = reinterpret_cast<void (*)(int, void *, std::size_t)>(dlsym(library, "lib_end"));
    for (std::size_t size : sizes) {
        for (int kind = 0; kind < 4; kind++) {
            expect(
                false, "delete of the library's", [&] { end(kind, lib_make(kind, size), size); });
            expect(false, "the library's delete", [&] { lib_end(kind, make(kind, size), size); });
            expect(false, "its own", [&] { lib_end(kind, lib_make(kind, size), size); });
            expect(false, "ours", [&] { end(kind, make(kind, size), size); });
        }
    }
    expect(true, "delete of new[]", [] { end(0, make(2, 24), 24); });
    expect(true, "delete[] of new", [] { end(2, make(0, 24), 24); });
    expect(true, "wrong size", [] { end(1, make(0, 24), 25); });
    expect(true, "no alignment", [] { end(0, make(3, 24), 24); });
    expect(true, "second delete", [&] {
        void *block = lib_make(0, 24);
        end(0, block, 24);
        end(0, block, 24);
    });
    std::printf("%d failures\n", failures);
    return failures != 0;
}
