/* A program that replaces operator new alone, by malloc, or operator delete alone, by free, to
 * count calls: the other one stays hakmem's, and has to go along with that. REPLACES_NEW says
 * which. */
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

static long calls;

#if REPLACES_NEW
void *operator new(std::size_t size)
{
    calls++;
    if (void *block = std::malloc(size)) {
        return block;
    }
    throw std::bad_alloc();
}
#else
void operator delete(void *block) noexcept
{
    calls++;
    std::free(block);
}

void operator delete(void *block, std::size_t size) noexcept
{
    (void)size;
    calls++;
    std::free(block);
}
#endif

struct node {
    virtual ~node() = default;
    std::unique_ptr<node> next;
    std::string text = std::string(100, 'x');
};

int main()
{
    for (int i = 0; i < 1000; i++) {
        auto head = std::make_unique<node>();
        head->next = std::make_unique<node>();
        std::vector<std::string> texts(10, std::string(50, 'y'));
        std::unique_ptr<char[]> bytes(new char[300]);
        std::unique_ptr<std::string[]> more(new std::string[7]);
        delete new (std::nothrow) int(3);
    }
    std::printf("%ld calls\n", calls);
    return calls >= 1000 ? 0 : 1;
}
