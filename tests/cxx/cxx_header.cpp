/* Owns the tests of include/hakmem/hakmem.hpp.
 *
 * hakmem_usable_size aborts for a block that is not hakmem's, so asking it about the memory of a
 * container proves where that came from.
 */
#include <hakmem/hakmem.hpp>

#include <cstdint>
#include <deque>
#include <gtest/gtest.h>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

template <class T> using vector = std::vector<T, hakmem::allocator<T>>;

using string = std::basic_string<char, std::char_traits<char>, hakmem::allocator<char>>;

struct alignas(256) wide {
    int value = 0;
};

bool is_aligned(const void *block, std::size_t alignment)
{
    return reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

/* The counters of the statistics, to see that what was taken is given back. */
std::uint64_t live_blocks()
{
    return hakmem::stats().live_blocks;
}

using traits = std::allocator_traits<hakmem::allocator<int>>;
static_assert(traits::is_always_equal::value);
static_assert(traits::propagate_on_container_move_assignment::value);
static_assert(std::is_same_v<traits::rebind_alloc<wide>, hakmem::allocator<wide>>);
static_assert(std::is_empty_v<hakmem::allocator<int>>);
static_assert(sizeof(vector<int>) == sizeof(std::vector<int>));
static_assert(std::is_nothrow_default_constructible_v<hakmem::allocator<int>>);
static_assert(std::is_nothrow_copy_constructible_v<hakmem::allocator<int>>);
static_assert(hakmem::allocator<int>() == hakmem::allocator<wide>());
static_assert(!(hakmem::allocator<int>() != hakmem::allocator<int>()));

TEST(Allocator, ServesAVector)
{
    vector<int> numbers;
    for (int i = 0; i < 100000; i++) {
        numbers.push_back(i);
    }
    EXPECT_GE(hakmem_usable_size(numbers.data()), 400000u);
    EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), 0ll), 4999950000ll);
    vector<int> other = std::move(numbers);
    EXPECT_EQ(other.size(), 100000u);
    other.resize(10);
    other.shrink_to_fit();
    EXPECT_EQ(other[9], 9);
}

TEST(Allocator, ServesNodeContainers)
{
    using pair = std::pair<const int, string>;
    std::map<int, string, std::less<int>, hakmem::allocator<pair>> tree;
    std::unordered_map<int, string, std::hash<int>, std::equal_to<int>, hakmem::allocator<pair>>
        table;
    std::list<string, hakmem::allocator<string>> list;
    std::deque<int, hakmem::allocator<int>> queue;
    for (int i = 0; i < 3000; i++) {
        string text(static_cast<std::size_t>(i % 100), 'a');
        tree.emplace(i, text);
        table.emplace(i, text);
        list.push_front(text);
        queue.push_back(i);
    }
    for (int i = 0; i < 3000; i += 2) {
        tree.erase(i);
        table.erase(i);
        queue.pop_front();
    }
    EXPECT_EQ(tree.size(), 1500u);
    EXPECT_EQ(table.at(2999).size(), 99u);
    EXPECT_EQ(list.back().size(), 0u);
    EXPECT_EQ(queue.front(), 1500);
}

TEST(Allocator, HonoursAlignment)
{
    vector<wide> blocks(1);
    for (std::size_t i = 1; i < 200; i++) {
        blocks.push_back(wide{static_cast<int>(i)});
        ASSERT_TRUE(is_aligned(blocks.data(), alignof(wide)));
        ASSERT_EQ(blocks.back().value, static_cast<int>(i));
    }
    std::set<wide, bool (*)(const wide &, const wide &), hakmem::allocator<wide>> tree(
        [](const wide &a, const wide &b) { return a.value < b.value; });
    for (int i = 0; i < 100; i++) {
        auto [place, added] = tree.insert(wide{i});
        ASSERT_TRUE(added);
        ASSERT_TRUE(is_aligned(&*place, alignof(wide)));
    }
}

TEST(Allocator, EmptyRequestGivesABlock)
{
    hakmem::allocator<int> allocator;
    int *first = allocator.allocate(0);
    int *second = allocator.allocate(0);
    EXPECT_NE(first, nullptr);
    EXPECT_NE(first, second);
    allocator.deallocate(first, 0);
    allocator.deallocate(second, 0);
}

TEST(Allocator, ThrowsWhenTheProductOverflows)
{
    hakmem::allocator<int> ints;
    hakmem::allocator<wide> wides;
    volatile std::size_t count = SIZE_MAX;
    EXPECT_THROW((void)ints.allocate(count), std::bad_array_new_length);
    EXPECT_THROW((void)ints.allocate(count / sizeof(int)), std::bad_array_new_length);
    EXPECT_THROW((void)ints.allocate(count / 4 + 2), std::bad_array_new_length);
    EXPECT_THROW((void)wides.allocate(count / sizeof(wide) + 1), std::bad_array_new_length);
    EXPECT_THROW((void)wides.allocate(count / 2 / sizeof(wide) + 1), std::bad_array_new_length);
}

TEST(Allocator, ThrowsWhenThereIsNoMemory)
{
    hakmem::allocator<char> chars;
    hakmem::allocator<wide> wides;
    volatile std::size_t most = PTRDIFF_MAX;
    EXPECT_THROW((void)chars.allocate(most), std::bad_alloc);
    EXPECT_THROW((void)wides.allocate(most / sizeof(wide)), std::bad_alloc);
    try {
        (void)chars.allocate(most);
    } catch (const std::bad_array_new_length &) {
        ADD_FAILURE() << "the length as such is possible";
    } catch (const std::bad_alloc &) {
    }
}

TEST(Allocator, GivesEverythingBack)
{
    std::uint64_t before = live_blocks();
    {
        vector<string> texts;
        for (int i = 0; i < 1000; i++) {
            texts.emplace_back(static_cast<std::size_t>(i), 'z');
        }
        std::shared_ptr<wide> shared =
            std::allocate_shared<wide>(hakmem::allocator<wide>(), wide{7});
        EXPECT_TRUE(is_aligned(shared.get(), alignof(wide)));
        EXPECT_GT(live_blocks(), before);
    }
    EXPECT_EQ(live_blocks(), before);
}

TEST(Resource, ServesPmrContainers)
{
    std::uint64_t before = live_blocks();
    {
        hakmem::memory_resource resource;
        std::pmr::vector<std::pmr::string> texts(&resource);
        std::pmr::map<int, std::pmr::vector<int>> tree(&resource);
        for (int i = 0; i < 2000; i++) {
            texts.emplace_back(static_cast<std::size_t>(i % 500), 'q');
            tree[i % 300].push_back(i);
        }
        EXPECT_GE(hakmem_usable_size(texts.data()), 2000 * sizeof(std::pmr::string));
        EXPECT_GE(hakmem_usable_size(texts[499].data()), 500u);
        EXPECT_EQ(tree[299].front(), 299);
        EXPECT_GT(live_blocks(), before);
    }
    EXPECT_EQ(live_blocks(), before);
}

TEST(Resource, FeedsPools)
{
    std::uint64_t before = live_blocks();
    {
        hakmem::memory_resource resource;
        std::pmr::unsynchronized_pool_resource pool(&resource);
        std::pmr::monotonic_buffer_resource buffer(&resource);
        std::pmr::list<int> pooled(&pool);
        std::pmr::vector<int> bumped(&buffer);
        for (int i = 0; i < 10000; i++) {
            pooled.push_back(i);
            bumped.push_back(i);
        }
        EXPECT_EQ(pooled.back(), bumped.back());
    }
    EXPECT_EQ(live_blocks(), before);
}

TEST(Resource, HonoursAlignment)
{
    hakmem::memory_resource resource;
    for (std::size_t alignment = 1; alignment <= 1u << 20; alignment *= 2) {
        for (std::size_t size : {1u, 16u, 100u, 5000u, 100000u}) {
            void *block = resource.allocate(size, alignment);
            ASSERT_TRUE(is_aligned(block, alignment));
            ASSERT_GE(hakmem_usable_size(block), size);
            resource.deallocate(block, size, alignment);
        }
    }
}

TEST(Resource, AllInstancesAreEqual)
{
    hakmem::memory_resource first;
    hakmem::memory_resource second;
    EXPECT_TRUE(first.is_equal(second));
    EXPECT_TRUE(first == second);
    EXPECT_FALSE(first.is_equal(*std::pmr::new_delete_resource()));
    EXPECT_FALSE(first.is_equal(*std::pmr::null_memory_resource()));
    void *block = first.allocate(100, 64);
    second.deallocate(block, 100, 64);

    std::pmr::vector<int> source(1000, 5, &first);
    const int *memory = source.data();
    std::pmr::vector<int> target(&second);
    target = std::move(source);
    EXPECT_EQ(target.data(), memory) << "equal resources let the memory move";
}

TEST(Resource, EmptyRequestGivesABlock)
{
    hakmem::memory_resource resource;
    void *first = resource.allocate(0, 8);
    void *second = resource.allocate(0, 8);
    EXPECT_NE(first, nullptr);
    EXPECT_NE(first, second);
    resource.deallocate(first, 0, 8);
    resource.deallocate(second, 0, 8);
}

TEST(Resource, ThrowsWhenThereIsNoMemory)
{
    hakmem::memory_resource resource;
    volatile std::size_t impossible = SIZE_MAX - 10000;
    EXPECT_THROW((void)resource.allocate(impossible, 16), std::bad_alloc);
    EXPECT_THROW((void)resource.allocate(impossible, 4096), std::bad_alloc);
    EXPECT_THROW((void)resource.allocate(impossible / 2, 1), std::bad_alloc);
    void *block = resource.allocate(10, 16);
    resource.deallocate(block, 10, 16);
}

TEST(Stats, FollowTheHeap)
{
    hakmem_usage before = hakmem::tier(HAKMEM_TIER_BIG);
    hakmem_stats all_before = hakmem::stats();
    hakmem::allocator<char> chars;
    char *block = chars.allocate(30 << 20);
    hakmem_usage during = hakmem::tier(HAKMEM_TIER_BIG);
    hakmem_stats all_during = hakmem::stats();
    chars.deallocate(block, 30 << 20);
    hakmem_usage after = hakmem::tier(HAKMEM_TIER_BIG);
    EXPECT_EQ(during.live_blocks, before.live_blocks + 1);
    EXPECT_GE(during.live_bytes, before.live_bytes + (30u << 20));
    EXPECT_EQ(all_during.live_blocks, all_before.live_blocks + 1);
    EXPECT_EQ(after.live_blocks, before.live_blocks);
    EXPECT_EQ(hakmem::tier(hakmem_tier_count()).malloc_calls, 0u);
}

} // namespace
