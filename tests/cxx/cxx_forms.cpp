/* Correct C++ that a check of sizes, alignments and of which operator belongs to which could take
 * for a mistake: cookies of arrays, virtual destructors, several bases, memory resources. Run in
 * the hardened preset as well, where there are such checks. */
#include <algorithm>
#include <any>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <new>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

namespace {

struct first_base {
    virtual ~first_base() = default;
    std::int64_t a = 1;
};

struct second_base {
    virtual ~second_base() = default;
    std::int64_t b = 2;
};

struct derived : first_base, second_base {
    std::array<char, 100> more{};
};

struct alignas(64) wide {
    ~wide()
    {
    }
    std::array<char, 200> bytes{};
};

struct with_destructor {
    ~with_destructor()
    {
    }
    std::int32_t value = 7;
};

struct own_operators {
    static void *operator new(std::size_t size)
    {
        return std::malloc(size);
    }
    static void operator delete(void *block)
    {
        std::free(block);
    }
    int value = 3;
};

/* Throws from its constructor: what was allocated for it goes back by the matching operator. */
struct thrower {
    thrower()
    {
        throw 1;
    }
    std::array<char, 300> bytes{};
};

template <class Function> void on_a_thread_too(Function function)
{
    function();
    std::thread(function).join();
}

} // namespace

TEST(forms, objects_of_several_bases)
{
    on_a_thread_too([] {
        first_base *first = new derived;
        delete first;
        second_base *second = new derived;
        EXPECT_NE(static_cast<void *>(second), dynamic_cast<void *>(second));
        delete second;
        std::unique_ptr<second_base> owned = std::make_unique<derived>();
        std::shared_ptr<first_base> shared = std::make_shared<derived>();
        std::shared_ptr<second_base> other(new derived);
    });
}

TEST(forms, arrays_with_and_without_cookies)
{
    on_a_thread_too([] {
        for (std::size_t count : {0u, 1u, 3u, 100u, 5000u, 300000u}) {
            delete[] new char[count];
            delete[] new std::int64_t[count];
            delete[] new with_destructor[count];
            delete[] new wide[count % 1000];
            delete[] new (std::nothrow) with_destructor[count];
            delete[] new (std::nothrow) wide[count % 1000];
            auto array = std::make_unique<with_destructor[]>(count);
            std::shared_ptr<char[]> shared(new char[count]);
        }
    });
}

TEST(forms, aligned_objects)
{
    on_a_thread_too([] {
        delete new wide;
        delete new (std::nothrow) wide;
        std::vector<wide> many(30);
        many.emplace_back();
        auto shared = std::make_shared<wide>();
        void *block = ::operator new(100, std::align_val_t(256));
        ::operator delete(block, 100, std::align_val_t(256));
        block = ::operator new[](100, std::align_val_t(8));
        ::operator delete[](block, std::align_val_t(8));
    });
}

/* An alignment that is no power of two counts as no memory; the new_handler is not asked. */
TEST(forms, impossible_alignments)
{
    static bool asked;
    std::set_new_handler([] {
        asked = true;
        std::set_new_handler(nullptr);
    });
    for (std::size_t wrong : {std::size_t{0}, std::size_t{3}, std::size_t{24}, SIZE_MAX}) {
        for (std::size_t size : {0u, 100u, 100000u, 3000000u}) {
            const auto alignment = static_cast<std::align_val_t>(wrong);
            EXPECT_THROW((void)::operator new(size, alignment), std::bad_alloc);
            EXPECT_THROW((void)::operator new[](size, alignment), std::bad_alloc);
            EXPECT_EQ(::operator new(size, alignment, std::nothrow), nullptr);
            EXPECT_EQ(::operator new[](size, alignment, std::nothrow), nullptr);
        }
    }
    std::set_new_handler(nullptr);
    EXPECT_FALSE(asked);
}

TEST(forms, operators_called_by_name)
{
    on_a_thread_too([] {
        ::operator delete(::operator new(50));
        ::operator delete (::operator new(50), std::size_t{50});
        ::operator delete(::operator new(50, std::nothrow), std::nothrow);
        ::operator delete[](::operator new[](50));
        ::operator delete[](::operator new[](50), std::size_t{50});
        ::operator delete[](::operator new[](50, std::nothrow), std::nothrow);
        ::operator delete (nullptr, std::size_t{50});
        ::operator delete[](nullptr);
        ::operator delete (::operator new(0), std::size_t{0});
        ::operator delete[](::operator new[](0), std::size_t{0});
    });
}

TEST(forms, constructors_that_throw)
{
    EXPECT_THROW(new thrower, int);
    EXPECT_THROW(new thrower[3], int);
    EXPECT_THROW(new (std::nothrow) thrower, int);
    EXPECT_THROW(std::make_shared<thrower>(), int);
}

TEST(forms, operators_of_a_class)
{
    delete new own_operators;
    std::vector<std::unique_ptr<own_operators>> many;
    for (int i = 0; i < 100; i++) {
        many.push_back(std::make_unique<own_operators>());
    }
}

TEST(forms, the_standard_library)
{
    on_a_thread_too([] {
        std::map<std::string, std::vector<std::string>> map;
        std::unordered_map<int, std::deque<int>> table;
        std::list<std::any> anything;
        for (int i = 0; i < 2000; i++) {
            std::string key(static_cast<std::size_t>(i % 97), 'x');
            map[key].push_back(key + key);
            map[key].back().shrink_to_fit();
            table[i % 31].push_back(i);
            table[i % 31].shrink_to_fit();
            anything.emplace_back(key);
        }
        std::vector<int> numbers(5000);
        std::iota(numbers.begin(), numbers.end(), 0);
        std::stable_sort(numbers.begin(), numbers.end(), std::greater<>());
        std::inplace_merge(numbers.begin(), numbers.begin() + 2500, numbers.end());
        std::ostringstream text;
        text << std::string(10000, 'y') << 3.14;
        EXPECT_TRUE(std::regex_search(text.str(), std::regex("y{10}3\\.14")));
        std::function<int(int)> function = [map](int i) { return i + int(map.size()); };
        EXPECT_EQ(function(1), 98);
        auto future = std::async(std::launch::async, [] { return std::string(5000, 'z'); });
        EXPECT_EQ(future.get().size(), 5000u);
    });
}

TEST(forms, memory_resources)
{
    std::pmr::unsynchronized_pool_resource pool;
    std::pmr::monotonic_buffer_resource buffer(64);
    for (std::pmr::memory_resource *resource :
         {std::pmr::new_delete_resource(), static_cast<std::pmr::memory_resource *>(&pool),
          static_cast<std::pmr::memory_resource *>(&buffer)}) {
        std::pmr::vector<std::pmr::string> texts(resource);
        for (std::size_t i = 0; i < 500; i++) {
            texts.emplace_back(i, 'a');
        }
        for (std::size_t alignment = 1; alignment <= 4096; alignment *= 2) {
            void *block = resource->allocate(100, alignment);
            resource->deallocate(block, 100, alignment);
        }
    }
}
