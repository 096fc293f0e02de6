/* A static program in C++ that has new and catches what it throws, and nothing else of the C++
 * library: what hakmem refers to weakly nobody else brings in. Behaviours 6 and 30. */
#include <cstdint>
#include <cstdio>
#include <new>

static volatile std::size_t impossible = SIZE_MAX / 2 - 64;
static int calls;

static void give_up()
{
    calls++;
    std::set_new_handler(nullptr);
}

int main()
{
    delete new int(3);
    std::set_new_handler(give_up);
    for (int i = 0; i < 3; i++) {
        try {
            ::operator delete(::operator new(impossible));
            return 1;
        } catch (const std::bad_alloc &) {
        }
    }
    std::printf("the handler was called %d times\n", calls);
    return calls == 1 ? 0 : 1;
}
