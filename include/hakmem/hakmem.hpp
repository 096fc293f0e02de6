/* hakmem for C++: a memory resource, an allocator for containers, and the statistics.
 *
 * Programs need none of this to be served by hakmem: malloc and operator new are replaced already.
 * It is for code that passes its memory around explicitly, by `std::pmr` or by an allocator
 * parameter, and wants the shortest way: no operator new and no new_handler in between, and frees
 * that say how large the block is.
 *
 * Header only, C++17. The program must be linked with hakmem, because names are used that other
 * allocators may lack. No object in here has state, so all may be used from any thread.
 */
#ifndef HAKMEM_HPP
#define HAKMEM_HPP

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory_resource>
#include <new>
#include <type_traits>

#include "hakmem.h"

/* C23 has these two, but few C libraries declare them yet. */
extern "C" void free_sized(void *block, std::size_t size) noexcept;
extern "C" void free_aligned_sized(void *block, std::size_t alignment, std::size_t size) noexcept;

namespace hakmem {

/* Not for use outside of this header. */
namespace detail {

/* What malloc promises for every block. */
inline constexpr std::size_t malloc_alignment = 16;

/* Throws where the program has exceptions, and ends it where it has none. */
template <class Exception> [[noreturn]] void fail()
{
#if defined(__cpp_exceptions)
    throw Exception();
#else
    std::abort();
#endif
}

/* `size` bytes at a multiple of `alignment`, which is a power of two. */
[[nodiscard]] inline void *allocate(std::size_t size, std::size_t alignment)
{
    void *block =
        alignment <= malloc_alignment ? std::malloc(size) : std::aligned_alloc(alignment, size);
    if (block == nullptr) {
        fail<std::bad_alloc>();
    }
    return block;
}

/* The free must be of the same kind as the allocation, which the alignment decides. */
inline void deallocate(void *block, std::size_t size, std::size_t alignment) noexcept
{
    if (alignment <= malloc_alignment) {
        ::free_sized(block, size);
    } else {
        ::free_aligned_sized(block, alignment, size);
    }
}

} // namespace detail

/* A `std::pmr::memory_resource` on hakmem's heap.
 *
 * All instances are the same resource: what one handed out, any other takes back, and containers
 * on different instances exchange their memory instead of copying elements. `allocate` throws
 * std::bad_alloc when there is no memory; 0 bytes give a block of its own. */
class memory_resource : public std::pmr::memory_resource {
  private:
    void *do_allocate(std::size_t size, std::size_t alignment) override
    {
        return detail::allocate(size, alignment);
    }

    void do_deallocate(void *block, std::size_t size, std::size_t alignment) override
    {
        detail::deallocate(block, size, alignment);
    }

    /* Without run-time type information only identity can be seen. */
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
#if defined(__cpp_rtti)
        return dynamic_cast<const memory_resource *>(&other) != nullptr;
#else
        return this == &other;
#endif
    }
};

/* An allocator for standard containers: `std::vector<T, hakmem::allocator<T>>`.
 *
 * Stateless: all instances are equal, and a container pays no byte for it. Types with an alignment
 * above malloc's get it. */
template <class T> class allocator {
  public:
    /* What containers ask of an allocator. */
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using propagate_on_container_move_assignment = std::true_type;
    using is_always_equal = std::true_type;

    constexpr allocator() noexcept = default;

    /* From one for other objects. */
    template <class U> constexpr allocator(const allocator<U> &) noexcept
    {
    }

    /* Memory for `count` objects, which are not constructed. Throws std::bad_array_new_length when
     * a pointer difference could not express the bytes, std::bad_alloc when there is no memory. */
    [[nodiscard]] T *allocate(std::size_t count)
    {
        constexpr auto most_bytes =
            static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
        if (count > most_bytes / sizeof(T)) {
            detail::fail<std::bad_array_new_length>();
        }
        return static_cast<T *>(detail::allocate(count * sizeof(T), alignof(T)));
    }

    /* Takes back what `allocate(count)` returned, of this or of any other instance. */
    void deallocate(T *block, std::size_t count) noexcept
    {
        detail::deallocate(block, count * sizeof(T), alignof(T));
    }
};

/* All are equal, whatever they are for. */
template <class T, class U>
constexpr bool operator==(const allocator<T> &, const allocator<U> &) noexcept
{
    return true;
}

/* None differ. */
template <class T, class U>
constexpr bool operator!=(const allocator<T> &, const allocator<U> &) noexcept
{
    return false;
}

/* Enters a scope, or with nullptr none, and leaves it at the end of the block: what the thread
 * allocates meanwhile, by operator new and malloc, comes from there. */
class scope_guard {
  public:
    /* The calling thread enters the scope. Throws bad_alloc, or ends the program where there are no
     * exceptions, if there is no memory for that. */
    explicit scope_guard(::hakmem_scope *scope) : scope_(scope)
    {
        if (::hakmem_scope_enter(scope) != 0) {
            detail::fail<std::bad_alloc>();
        }
    }

    ~scope_guard()
    {
        ::hakmem_scope_leave(scope_);
    }

    scope_guard(const scope_guard &) = delete;
    scope_guard &operator=(const scope_guard &) = delete;

  private:
    ::hakmem_scope *scope_;
};

/* A `std::pmr::memory_resource` on a scope, wherever the thread is. It does not own the scope,
 * which has to live as long as blocks of it do. What one resource on a scope handed out, any other
 * on any scope takes back, but only those on the same scope are equal: so containers keep their
 * memory where they were told. */
class scope_resource : public std::pmr::memory_resource {
  public:
    /* Of this scope, which is not nullptr. */
    explicit scope_resource(::hakmem_scope *scope) noexcept : scope_(scope)
    {
    }

    /* The scope that it is of. */
    [[nodiscard]] ::hakmem_scope *scope() const noexcept
    {
        return scope_;
    }

  private:
    void *do_allocate(std::size_t size, std::size_t alignment) override
    {
        void *block = ::hakmem_scope_aligned_alloc(
            scope_, alignment > detail::malloc_alignment ? alignment : detail::malloc_alignment,
            size);
        if (block == nullptr) {
            detail::fail<std::bad_alloc>();
        }
        return block;
    }

    void do_deallocate(void *block, std::size_t size, std::size_t alignment) override
    {
        detail::deallocate(block, size, alignment);
    }

    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
#if defined(__cpp_rtti)
        const auto *same = dynamic_cast<const scope_resource *>(&other);
        return same != nullptr && same->scope_ == scope_;
#else
        return this == &other;
#endif
    }

    ::hakmem_scope *scope_;
};

/* Where the memory is; hakmem.h says what each figure means. */
[[nodiscard]] inline ::hakmem_stats stats() noexcept
{
    ::hakmem_stats result;
    ::hakmem_get_stats(&result, sizeof(result));
    return result;
}

/* The same of one tier: one of enum hakmem_tier, or any number below ::hakmem_tier_count(). */
[[nodiscard]] inline ::hakmem_usage tier(unsigned number) noexcept
{
    ::hakmem_usage result;
    ::hakmem_get_tier(number, &result, sizeof(result));
    return result;
}

/* Writes the live profile to a file: hakmem_profile_write. */
inline int write_profile(const char *path) noexcept
{
    return ::hakmem_profile_write(path);
}

} // namespace hakmem

#endif
