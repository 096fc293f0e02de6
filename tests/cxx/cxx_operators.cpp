/* Owns the tests that all forms of operator new and delete are hakmem's, and that they serve
 * blocks as malloc does: behaviours 5 and 6.
 *
 * Asking hakmem_usable_size about a block is the proof of who served it: it aborts when the block
 * is not hakmem's.
 */
#include "cxx_operators.hpp"

#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <hakmem/hakmem.h>
#include <list>
#include <malloc.h>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t sizes[] = {1, 8, 40, 100, 1024, 1025, 5000, 32768, 100000, 3u << 20};
constexpr align_val_t alignments[] = {
    align_val_t{16}, align_val_t{32}, align_val_t{64}, align_val_t{4096}, align_val_t{2u << 20}};

bool is_aligned(const void *block, align_val_t alignment)
{
    return reinterpret_cast<std::uintptr_t>(block) % static_cast<std::size_t>(alignment) == 0;
}

TEST(Operators, LinkIsReal)
{
    ASSERT_STREQ(hakmem_version(), HAKMEM_VERSION);
}

/* behaviour 5: each form of new with each form of delete that fits, in every tier. */
TEST(Operators, EveryNewGoesWithEveryDelete)
{
    for (const allocation &form : allocations) {
        for (const deallocation &back : deallocations) {
            if (form.aligned != back.aligned) {
                continue;
            }
            for (std::size_t size : sizes) {
                for (align_val_t alignment : alignments) {
                    void *block = form.call(size, alignment);
                    ASSERT_NE(block, nullptr) << form.name;
                    ASSERT_TRUE(is_aligned(block, form.aligned ? alignment : align_val_t{16}))
                        << form.name << ' ' << size;
                    ASSERT_GE(hakmem_usable_size(block), size) << form.name;
                    std::memset(block, 0x5a, size < 5000 ? size : 5000);
                    back.call(block, size, alignment);
                }
            }
        }
    }
}

/* behaviour 5: malloc and new have one heap, so the functions of the one take blocks of the other.
 */
TEST(Operators, MixWithMalloc)
{
    for (const allocation &form : allocations) {
        for (std::size_t size : sizes) {
            void *block = form.call(size, align_val_t{64});
            ASSERT_NE(block, nullptr) << form.name;
            std::memset(block, 7, size);
            block = std::realloc(block, size + 100);
            ASSERT_NE(block, nullptr);
            ASSERT_EQ(static_cast<char *>(block)[size - 1], 7);
            std::free(block);
        }
    }
    for (const deallocation &back : deallocations) {
        back.call(aligned_alloc(64, 500), 500, align_val_t{64});
    }
}

/* behaviour 5 */
TEST(Operators, DeleteTakesNull)
{
    for (const deallocation &back : deallocations) {
        back.call(nullptr, 100, align_val_t{64});
    }
}

std::uint64_t large_blocks()
{
    struct hakmem_usage usage;
    hakmem_get_tier(HAKMEM_TIER_LARGE, &usage, sizeof(usage));
    return usage.live_blocks;
}

/* behaviour 5: the blocks are really given back, or address space would grow by gigabytes. */
TEST(Operators, DeleteReallyFrees)
{
    struct hakmem_stats before;
    struct hakmem_stats after;
    std::uint64_t large_before = large_blocks();
    hakmem_get_stats(&before, sizeof(before));
    for (const deallocation &back : deallocations) {
        for (int i = 0; i < 5000; i++) {
            void *block = ::operator new (60000, align_val_t{64});
            back.call(block, 60000, align_val_t{64});
        }
    }
    hakmem_get_stats(&after, sizeof(after));
    EXPECT_LT(after.mapped_bytes, before.mapped_bytes + (256u << 20));
    EXPECT_EQ(large_blocks(), large_before);
}

/* behaviour 6 */
TEST(Operators, NewOfNothingIsUnique)
{
    for (const allocation &form : allocations) {
        std::set<void *> blocks;
        for (int i = 0; i < 100; i++) {
            void *block = form.call(0, align_val_t{32});
            ASSERT_NE(block, nullptr) << form.name;
            ASSERT_TRUE(blocks.insert(block).second) << form.name;
        }
        for (void *block : blocks) {
            std::free(block);
        }
    }
}

struct alignas(128) wide {
    char bytes[200];
};

struct base {
    virtual ~base() = default;
    int first = 1;
};

struct derived : base {
    char more[3000] = {};
};

/* behaviour 5: what the compiler itself emits for the expressions of the language. */
TEST(Operators, Expressions)
{
    for (int i = 0; i < 300; i++) {
        std::unique_ptr<int> plain(new int(i));
        std::unique_ptr<int[]> array(new int[static_cast<std::size_t>(i) + 1]());
        std::unique_ptr<wide> aligned(new wide);
        std::unique_ptr<wide[]> aligned_array(new wide[static_cast<std::size_t>(i % 7) + 1]);
        std::unique_ptr<base> polymorphic(new derived);
        std::unique_ptr<wide> quiet(new (nothrow) wide);
        ASSERT_EQ(*plain, i);
        ASSERT_EQ(array[static_cast<std::size_t>(i)], 0);
        ASSERT_TRUE(is_aligned(aligned.get(), align_val_t{128}));
        ASSERT_TRUE(is_aligned(aligned_array.get(), align_val_t{128}));
        ASSERT_TRUE(is_aligned(quiet.get(), align_val_t{128}));
        ASSERT_GE(hakmem_usable_size(polymorphic.get()), sizeof(derived));
    }
}

/* behaviour 5: the C++ library's own code allocates through the same operators. */
TEST(Operators, ServeTheStandardLibrary)
{
    std::string text(1000, 'x');
    std::vector<int> numbers(5000, 3);
    std::list<std::string> list(100, text);
    EXPECT_GE(hakmem_usable_size(text.data()), 1001u);
    EXPECT_GE(hakmem_usable_size(numbers.data()), 20000u);
    EXPECT_GE(hakmem_usable_size(list.back().data()), 1001u);
    std::thread([&list] { list.clear(); }).join();
    EXPECT_TRUE(list.empty());
}

struct fails_to_construct {
    fails_to_construct()
    {
        throw 5;
    }
    char bytes[50000];
};

/* behaviour 5: the compiler calls the delete that matches when a constructor throws. */
TEST(Operators, ConstructorThatThrowsLeavesNoBlock)
{
    std::uint64_t large_before = large_blocks();
    for (int i = 0; i < 100; i++) {
        EXPECT_THROW(new fails_to_construct, int);
        EXPECT_THROW(new (nothrow) fails_to_construct, int);
        EXPECT_THROW(new fails_to_construct[3], int);
    }
    EXPECT_EQ(large_blocks(), large_before);
}

} // namespace
