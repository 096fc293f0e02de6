/* Owns the tests of what new does when there is no memory: behaviour 6.
 */
#include "cxx_operators.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <hakmem/hakmem.h>
#include <stdexcept>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace {

/* The compiler would refuse, or fold, a size that it can see to be impossible. */
volatile std::size_t impossible = SIZE_MAX - 100;
volatile std::size_t half = static_cast<std::size_t>(PTRDIFF_MAX) - 5000;

constexpr align_val_t alignment{64};

int calls;

/* Each test starts and ends without a handler. */
class NewHandler : public ::testing::Test {
  protected:
    void SetUp() override
    {
        ASSERT_STREQ(hakmem_version(), HAKMEM_VERSION);
        calls = 0;
        std::set_new_handler(nullptr);
    }

    void TearDown() override
    {
        std::set_new_handler(nullptr);
    }
};

/* behaviour 6 */
TEST_F(NewHandler, ThrowingFormsThrowBadAlloc)
{
    for (const allocation &form : allocations) {
        if (form.throws) {
            EXPECT_THROW(form.call(impossible, alignment), std::bad_alloc) << form.name;
            EXPECT_THROW(form.call(half, alignment), std::bad_alloc) << form.name;
            EXPECT_THROW(form.call(half, align_val_t{1u << 20}), std::bad_alloc) << form.name;
        }
    }
}

/* behaviour 6 */
TEST_F(NewHandler, NothrowFormsReturnNull)
{
    for (const allocation &form : allocations) {
        if (!form.throws) {
            EXPECT_EQ(form.call(impossible, alignment), nullptr) << form.name;
            EXPECT_EQ(form.call(half, alignment), nullptr) << form.name;
        }
    }
}

/* behaviour 6: the expressions, with their own check of the number of elements. */
TEST_F(NewHandler, ExpressionsThrow)
{
    EXPECT_THROW(delete[](new char[half]), std::bad_alloc);
    /* gcc's is a bad_array_new_length, which is a bad_alloc; clang leaves it to the operator. */
    EXPECT_THROW(delete[](new double[impossible]), std::bad_alloc);
    EXPECT_EQ(new (nothrow) char[half], nullptr);
    EXPECT_THROW(std::vector<char>().reserve(half), std::bad_alloc);
}

void give_up_after_five()
{
    if (++calls == 5) {
        std::set_new_handler(nullptr);
    }
}

/* behaviour 6: the handler is called in a loop, until there is none. */
TEST_F(NewHandler, HandlerIsCalledInALoop)
{
    for (const allocation &form : allocations) {
        calls = 0;
        std::set_new_handler(give_up_after_five);
        if (form.throws) {
            EXPECT_THROW(form.call(impossible, alignment), std::bad_alloc) << form.name;
        } else {
            EXPECT_EQ(form.call(impossible, alignment), nullptr) << form.name;
        }
        EXPECT_EQ(calls, 5) << form.name;
    }
}

struct special_bad_alloc : std::bad_alloc {};

void throw_special()
{
    calls++;
    throw special_bad_alloc();
}

/* behaviour 6: what the handler throws passes through the library, and leaves it in order. */
TEST_F(NewHandler, ExceptionsOfTheHandlerPassThrough)
{
    for (const allocation &form : allocations) {
        if (form.throws) {
            std::set_new_handler(throw_special);
            for (int i = 0; i < 100; i++) {
                EXPECT_THROW(form.call(half, alignment), special_bad_alloc) << form.name;
            }
            void *block = form.call(1000, alignment);
            EXPECT_NE(block, nullptr);
            std::free(block);
        }
    }
    EXPECT_GE(calls, 100);
}

/* behaviour 6: nothing may leave a nothrow form, whatever the handler does. */
TEST_F(NewHandler, ExceptionsOfTheHandlerStayInsideNothrow)
{
    std::set_new_handler(throw_special);
    for (const allocation &form : allocations) {
        if (!form.throws) {
            calls = 0;
            EXPECT_NO_THROW(EXPECT_EQ(form.call(impossible, alignment), nullptr)) << form.name;
            EXPECT_EQ(calls, 1) << form.name;
        }
    }
}

/* behaviour 6: the handler is of the C++ operators alone. */
TEST_F(NewHandler, MallocDoesNotCallIt)
{
    std::set_new_handler(throw_special);
    EXPECT_EQ(std::malloc(impossible), nullptr);
    EXPECT_EQ(std::calloc(impossible, 2), nullptr);
    EXPECT_EQ(aligned_alloc(64, impossible), nullptr);
    EXPECT_EQ(calls, 0);
}

/* behaviour 6: in any thread, also as the first call that a thread makes. */
TEST_F(NewHandler, WorksInAnotherThread)
{
    std::set_new_handler(give_up_after_five);
    bool caught = false;
    std::thread([&caught] {
        try {
            ::operator delete(::operator new(impossible));
        } catch (const std::bad_alloc &) {
            caught = true;
        }
    }).join();
    EXPECT_TRUE(caught);
    EXPECT_EQ(calls, 5);
}

constexpr std::size_t ballast_bytes = std::size_t{512} << 20;
void *ballast;

void drop_ballast()
{
    calls++;
    std::free(ballast);
    ballast = nullptr;
    hakmem_purge();
    std::set_new_handler(give_up_after_five);
}

std::size_t address_space_in_use()
{
    unsigned long pages = 0;
    std::FILE *file = std::fopen("/proc/self/statm", "r");
    if (file == nullptr || std::fscanf(file, "%lu", &pages) != 1) {
        pages = 0;
    }
    if (file != nullptr) {
        std::fclose(file);
    }
    return pages * 4096;
}

/* behaviour 6: a handler that makes room is the reason why there is a loop. */
TEST_F(NewHandler, HandlerThatMakesRoomLetsNewSucceed)
{
    rlimit old_limit;
    ASSERT_EQ(getrlimit(RLIMIT_AS, &old_limit), 0);
    hakmem_purge();
    ballast = std::malloc(ballast_bytes);
    ASSERT_NE(ballast, nullptr);
    rlimit tight = old_limit;
    tight.rlim_cur = address_space_in_use() + (ballast_bytes / 4);
    ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
    std::set_new_handler(drop_ballast);
    void *block = nullptr;
    EXPECT_NO_THROW(block = ::operator new(ballast_bytes / 2));
    EXPECT_NE(block, nullptr);
    EXPECT_EQ(calls, 1);
    ::operator delete(block);
    std::free(ballast);
    setrlimit(RLIMIT_AS, &old_limit);
}

} // namespace
