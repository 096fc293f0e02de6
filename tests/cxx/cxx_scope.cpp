/* Scopes in C++: the guard and the memory resource of hakmem.hpp. */
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hakmem/hakmem.hpp>

namespace {

class Scope : public testing::Test {
  protected:
    ~Scope() override
    {
        hakmem_scope_destroy(scope_);
    }

    [[nodiscard]] static hakmem_scope_figures usage_of(hakmem_scope *scope)
    {
        hakmem_scope_figures usage;
        hakmem_scope_usage(scope, &usage, sizeof(usage));
        return usage;
    }

    hakmem_scope *scope_ = hakmem_scope_create("C++", 0, nullptr, nullptr);
};

TEST_F(Scope, AGuardLeavesWhenItEnds)
{
    std::unique_ptr<std::string> inside;
    {
        hakmem::scope_guard guard(scope_);
        inside = std::make_unique<std::string>(1000, 'x');
        {
            hakmem::scope_guard none(nullptr);
            auto outside = std::make_unique<std::string>(1000, 'x');
            EXPECT_EQ(usage_of(scope_).live_blocks, 2U);
        }
        EXPECT_EQ(usage_of(scope_).live_blocks, 2U);
    }
    auto outside = std::make_unique<std::string>(1000, 'x');
    EXPECT_EQ(usage_of(scope_).live_blocks, 2U);
    inside.reset();
    EXPECT_EQ(usage_of(scope_).live_blocks, 0U);
}

TEST_F(Scope, NewThrowsAtTheLimit)
{
    hakmem_scope_limit(scope_, 100000);
    hakmem::scope_guard guard(scope_);
    EXPECT_THROW(std::vector<char>(200000), std::bad_alloc);
    EXPECT_EQ(::operator new(200000, std::nothrow), nullptr);
    EXPECT_EQ(usage_of(scope_).live_blocks, 0U);
}

TEST_F(Scope, AResourceKeepsContainersInTheScope)
{
    struct alignas(128) Wide {
        char bytes[128];
    };
    hakmem::scope_resource resource(scope_), same(scope_);
    hakmem_scope *other_scope = hakmem_scope_create("other", 0, nullptr, nullptr);
    hakmem::scope_resource other(other_scope);
    EXPECT_TRUE(resource == same);
    EXPECT_FALSE(resource == other);
    EXPECT_EQ(resource.scope(), scope_);
    {
        std::pmr::vector<Wide> wide(10, &resource);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wide.data()) % 128, 0U);
        std::pmr::vector<std::pmr::string> strings(&resource);
        for (int i = 0; i < 100; i++) {
            strings.emplace_back(200, 'x');
        }
        EXPECT_EQ(usage_of(scope_).live_blocks, 102U);
        std::pmr::vector<std::pmr::string> copy(strings, &other);
        EXPECT_EQ(usage_of(other_scope).live_blocks, 101U);
    }
    EXPECT_EQ(usage_of(scope_).live_blocks, 0U);
    hakmem_scope_limit(scope_, 1000);
    EXPECT_THROW((void)resource.allocate(2000), std::bad_alloc);
    hakmem_scope_destroy(other_scope);
}

} // namespace
