/* Owns the list of all forms of operator new and delete, each with the same shape, so that tests
 * can go through them: behaviour 5.
 *
 * The forms with a hint are emitted by compilers that know from a profile how often memory is
 * used. No header declares them, so they are bound to their mangled names here.
 */
#ifndef CXX_OPERATORS_HPP
#define CXX_OPERATORS_HPP

#include <cstddef>
#include <new>

#define HINTED(name) __asm__(name)

void *new_hinted(std::size_t, unsigned char) HINTED("_Znwm12__hot_cold_t");
void *new_array_hinted(std::size_t, unsigned char) HINTED("_Znam12__hot_cold_t");
void *new_hinted(std::size_t, const std::nothrow_t &, unsigned char)
    HINTED("_ZnwmRKSt9nothrow_t12__hot_cold_t");
void *new_array_hinted(std::size_t, const std::nothrow_t &, unsigned char)
    HINTED("_ZnamRKSt9nothrow_t12__hot_cold_t");
void *new_hinted(std::size_t, std::align_val_t, unsigned char)
    HINTED("_ZnwmSt11align_val_t12__hot_cold_t");
void *new_array_hinted(std::size_t, std::align_val_t, unsigned char)
    HINTED("_ZnamSt11align_val_t12__hot_cold_t");
void *new_hinted(std::size_t, std::align_val_t, const std::nothrow_t &, unsigned char)
    HINTED("_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t");
void *new_array_hinted(std::size_t, std::align_val_t, const std::nothrow_t &, unsigned char)
    HINTED("_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t");

#undef HINTED

/* A form of new. Those without an alignment ignore the argument. */
struct allocation {
    const char *name;
    bool throws;
    bool aligned;
    void *(*call)(std::size_t size, std::align_val_t alignment);
};

/* A form of delete. Aligned blocks go to the forms that take an alignment, as the language asks. */
struct deallocation {
    const char *name;
    bool aligned;
    void (*call)(void *block, std::size_t size, std::align_val_t alignment);
};

using std::align_val_t;
using std::nothrow;

inline constexpr unsigned char cold = 1;
inline constexpr unsigned char hot = 254;

inline const allocation allocations[] = {
    {"new", true, false, [](std::size_t n, align_val_t) { return ::operator new(n); }},
    {"new[]", true, false, [](std::size_t n, align_val_t) { return ::operator new[](n); }},
    {"nothrow new", false, false,
     [](std::size_t n, align_val_t) { return ::operator new(n, nothrow); }},
    {"nothrow new[]", false, false,
     [](std::size_t n, align_val_t) { return ::operator new[](n, nothrow); }},
    {"aligned new", true, true, [](std::size_t n, align_val_t a) { return ::operator new(n, a); }},
    {"aligned new[]", true, true,
     [](std::size_t n, align_val_t a) { return ::operator new[](n, a); }},
    {"aligned nothrow new", false, true,
     [](std::size_t n, align_val_t a) { return ::operator new(n, a, nothrow); }},
    {"aligned nothrow new[]", false, true,
     [](std::size_t n, align_val_t a) { return ::operator new[](n, a, nothrow); }},
    {"hinted new", true, false, [](std::size_t n, align_val_t) { return new_hinted(n, hot); }},
    {"hinted new[]", true, false,
     [](std::size_t n, align_val_t) { return new_array_hinted(n, cold); }},
    {"hinted nothrow new", false, false,
     [](std::size_t n, align_val_t) { return new_hinted(n, nothrow, cold); }},
    {"hinted nothrow new[]", false, false,
     [](std::size_t n, align_val_t) { return new_array_hinted(n, nothrow, hot); }},
    {"hinted aligned new", true, true,
     [](std::size_t n, align_val_t a) { return new_hinted(n, a, hot); }},
    {"hinted aligned new[]", true, true,
     [](std::size_t n, align_val_t a) { return new_array_hinted(n, a, cold); }},
    {"hinted aligned nothrow new", false, true,
     [](std::size_t n, align_val_t a) { return new_hinted(n, a, nothrow, cold); }},
    {"hinted aligned nothrow new[]", false, true,
     [](std::size_t n, align_val_t a) { return new_array_hinted(n, a, nothrow, hot); }},
};

inline const deallocation deallocations[] = {
    {"delete", false, [](void *p, std::size_t, align_val_t) { ::operator delete(p); }},
    {"delete[]", false, [](void *p, std::size_t, align_val_t) { ::operator delete[](p); }},
    {"nothrow delete", false,
     [](void *p, std::size_t, align_val_t) { ::operator delete(p, nothrow); }},
    {"nothrow delete[]", false,
     [](void *p, std::size_t, align_val_t) { ::operator delete[](p, nothrow); }},
    {"sized delete", false, [](void *p, std::size_t n, align_val_t) { ::operator delete(p, n); }},
    {"sized delete[]", false,
     [](void *p, std::size_t n, align_val_t) { ::operator delete[](p, n); }},
    {"aligned delete", true, [](void *p, std::size_t, align_val_t a) { ::operator delete(p, a); }},
    {"aligned delete[]", true,
     [](void *p, std::size_t, align_val_t a) { ::operator delete[](p, a); }},
    {"aligned nothrow delete", true,
     [](void *p, std::size_t, align_val_t a) { ::operator delete(p, a, nothrow); }},
    {"aligned nothrow delete[]", true,
     [](void *p, std::size_t, align_val_t a) { ::operator delete[](p, a, nothrow); }},
    {"sized aligned delete", true,
     [](void *p, std::size_t n, align_val_t a) { ::operator delete(p, n, a); }},
    {"sized aligned delete[]", true,
     [](void *p, std::size_t n, align_val_t a) { ::operator delete[](p, n, a); }},
};

#endif
