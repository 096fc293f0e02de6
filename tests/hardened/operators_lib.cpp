// A library with operators of its own for its own calls, as LLVM's is built: it is linked with
// -Bsymbolic, and OWN_NEW and OWN_DELETE say which of the two it has. It makes blocks for others,
// and ends theirs.
#include <cstdlib>
#include <new>

#if OWN_NEW
void *operator new(std::size_t size)
{
    return std::malloc(size ? size : 1);
}

void *operator new(std::size_t size, const std::nothrow_t &) noexcept
{
    return std::malloc(size);
}

void *operator new[](std::size_t size)
{
    return std::malloc(size);
}

void *operator new(std::size_t size, std::align_val_t alignment)
{
    std::size_t multiple = static_cast<std::size_t>(alignment);
    return std::aligned_alloc(multiple, (size + multiple - 1) / multiple * multiple);
}
#endif

#if OWN_DELETE
void operator delete(void *block) noexcept
{
    std::free(block);
}

void operator delete(void *block, std::size_t) noexcept
{
    std::free(block);
}

void operator delete[](void *block) noexcept
{
    std::free(block);
}

void operator delete[](void *block, std::size_t) noexcept
{
    std::free(block);
}

void operator delete(void *block, std::align_val_t) noexcept
{
    std::free(block);
}

void operator delete(void *block, std::size_t, std::align_val_t) noexcept
{
    std::free(block);
}
#endif

extern "C" void *lib_make(int kind, std::size_t size)
{
    switch (kind) {
    case 0:
        return ::operator new(size);
    case 1:
        return ::operator new(size, std::nothrow);
    case 2:
        return ::operator new[](size);
    default:
        return ::operator new(size, std::align_val_t(64));
    }
}

extern "C" void lib_end(int kind, void *block, std::size_t size)
{
    switch (kind) {
    case 0:
        ::operator delete(block);
        break;
    case 1:
        ::operator delete(block, size);
        break;
    case 2:
        ::operator delete[](block);
        break;
    default:
        ::operator delete(block, size, std::align_val_t(64));
        break;
    }
}
