// consumer_cxx: the same for C++: operator new and the containers are served by hakmem, and a
// request that cannot be met throws.
#include <cstdint>
#include <cstdio>
#include <hakmem/hakmem.h>
#include <map>
#include <memory>
#include <new>
#include <string>

struct alignas(256) wide {
    char bytes[256];
};

static volatile std::size_t impossible = SIZE_MAX / 2 - 64;

static bool throws_bad_alloc()
{
    try {
        delete[] new char[impossible];
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

static std::uint64_t calls_so_far()
{
    hakmem_stats stats;
    hakmem_get_stats(&stats, sizeof(stats));
    return stats.malloc_calls;
}

int main()
{
    std::uint64_t before = calls_so_far();
    std::map<int, std::string> map;
    for (int i = 0; i < 1000; i++)
        map[i] = std::string(100, 'x');
    bool served = calls_so_far() >= before + 2000;

    // hakmem_usable_size() aborts for a block of another allocator.
    auto aligned = std::make_unique<wide>();
    auto plain = std::make_unique<std::string>("a string");
    bool ours = hakmem_usable_size(aligned.get()) >= sizeof(wide) &&
                hakmem_usable_size(plain.get()) >= sizeof(std::string);

    bool good = served && ours && throws_bad_alloc();
    std::puts(good ? "consumer_cxx: ok" : "consumer_cxx: FAILED");
    return good ? 0 : 1;
}
