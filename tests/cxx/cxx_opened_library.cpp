/* A library in C++ that a C program opens: its operators are hakmem's, and have to find the C++
 * library that throws for them. */
#include <cstdint>
#include <cstdio>
#include <new>
#include <vector>

static volatile std::size_t impossible = SIZE_MAX / 2 - 64;
static int calls, failures;

static void give_up_after_three()
{
    if (++calls == 3) {
        std::set_new_handler(nullptr);
    }
}

template <class Body> static void check(const char *what, Body body)
{
    try {
        body();
        std::printf("%s: nothing was thrown\n", what);
        failures++;
    } catch (const std::bad_alloc &) {
    }
}

extern "C" int check_operators()
{
    delete new int(3);
    for (int i = 0; i < 3; i++) {
        check("new", [] { ::operator delete(::operator new(impossible)); });
        check("new[]", [] { delete[] new char[impossible]; });
        check("aligned", [] {
            constexpr std::align_val_t alignment{64};
            ::operator delete(::operator new(impossible, alignment), alignment);
        });
        check("a container", [] { std::vector<char>().reserve(impossible); });
    }
    if (new (std::nothrow) char[impossible]) {
        std::puts("nothrow: not NULL");
        failures++;
    }
    std::set_new_handler(give_up_after_three);
    check("new with a handler", [] { ::operator delete(::operator new(impossible)); });
    if (calls != 3) {
        std::printf("the handler was called %d times, not 3\n", calls);
        failures++;
    }
    return failures != 0;
}
