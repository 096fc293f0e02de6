/* What the compiler calls for each access, as part of -fsanitize=thread. */
#include <string.h>

#include "engine/engine.h"

#define CODE __builtin_return_address(0)
#define HOOK __attribute__((visibility("default")))

typedef uint8_t word8;
typedef uint16_t word16;
typedef uint32_t word32;
typedef uint64_t word64;

/* ---- Plain accesses -------------------------------------------------------------------------- */

#define PLAIN(bytes, prefix)                                                                       \
    HOOK void __tsan_##prefix##read##bytes(void *address);                                         \
    HOOK void __tsan_##prefix##read##bytes(void *address)                                          \
    {                                                                                              \
        shadow_access(address, bytes, false, false, CODE);                                         \
    }                                                                                              \
    HOOK void __tsan_##prefix##write##bytes(void *address);                                        \
    HOOK void __tsan_##prefix##write##bytes(void *address)                                         \
    {                                                                                              \
        shadow_access(address, bytes, true, false, CODE);                                          \
    }

PLAIN(1, )
PLAIN(2, )
PLAIN(4, )
PLAIN(8, )
PLAIN(16, )
PLAIN(2, unaligned_)
PLAIN(4, unaligned_)
PLAIN(8, unaligned_)
PLAIN(16, unaligned_)

HOOK void __tsan_read_range(void *address, size_t size);
HOOK void __tsan_read_range(void *address, size_t size)
{
    shadow_access(address, size, false, false, CODE);
}

HOOK void __tsan_write_range(void *address, size_t size);
HOOK void __tsan_write_range(void *address, size_t size)
{
    shadow_access(address, size, true, false, CODE);
}

/* The names that CMakeLists.txt gives to the functions of <string.h>; clang has its own. */

#define MEMORY(prefix)                                                                             \
    HOOK void *prefix##memcpy(void *to, const void *from, size_t size);                            \
    HOOK void *prefix##memcpy(void *to, const void *from, size_t size)                             \
    {                                                                                              \
        shadow_access(from, size, false, false, CODE);                                             \
        shadow_access(to, size, true, false, CODE);                                                \
        return memcpy(to, from, size);                                                             \
    }                                                                                              \
    HOOK void *prefix##memmove(void *to, const void *from, size_t size);                           \
    HOOK void *prefix##memmove(void *to, const void *from, size_t size)                            \
    {                                                                                              \
        shadow_access(from, size, false, false, CODE);                                             \
        shadow_access(to, size, true, false, CODE);                                                \
        return memmove(to, from, size);                                                            \
    }                                                                                              \
    HOOK void *prefix##memset(void *to, int byte, size_t size);                                    \
    HOOK void *prefix##memset(void *to, int byte, size_t size)                                     \
    {                                                                                              \
        shadow_access(to, size, true, false, CODE);                                                \
        return memset(to, byte, size);                                                             \
    }

MEMORY(model_)
MEMORY(__tsan_)

/* ---- Atomic accesses ------------------------------------------------------------------------- */

/* The orders have the numbers of the compiler's __ATOMIC_* macros. */

static uint64_t exchanged(uint64_t before, uint64_t operand)
{
    (void)before;
    return operand;
}

static uint64_t added(uint64_t before, uint64_t operand)
{
    return before + operand;
}

static uint64_t subtracted(uint64_t before, uint64_t operand)
{
    return before - operand;
}

static uint64_t united(uint64_t before, uint64_t operand)
{
    return before | operand;
}

static uint64_t intersected(uint64_t before, uint64_t operand)
{
    return before & operand;
}

#define MODIFY(bits, name, change, counter)                                                        \
    HOOK word##bits __tsan_atomic##bits##_##name(                                                  \
        word##bits *address, word##bits value, int order);                                         \
    HOOK word##bits __tsan_atomic##bits##_##name(word##bits *address, word##bits value, int order) \
    {                                                                                              \
        return (word##bits)atomic_modify(address, bits / 8, change, value, order, counter, CODE);  \
    }

#define EXCHANGE(bits, name)                                                                       \
    HOOK int __tsan_atomic##bits##_compare_exchange_##name(                                        \
        word##bits *address, word##bits *expected, word##bits desired, int order, int failure);    \
    HOOK int __tsan_atomic##bits##_compare_exchange_##name(                                        \
        word##bits *address, word##bits *expected, word##bits desired, int order, int failure)     \
    {                                                                                              \
        uint64_t value = *expected;                                                                \
        bool done =                                                                                \
            atomic_compare_exchange(address, bits / 8, &value, desired, order, failure, CODE);     \
        *expected = (word##bits)value;                                                             \
        return done;                                                                               \
    }

#define ATOMIC(bits)                                                                               \
    HOOK word##bits __tsan_atomic##bits##_load(const word##bits *address, int order);              \
    HOOK word##bits __tsan_atomic##bits##_load(const word##bits *address, int order)               \
    {                                                                                              \
        return (word##bits)atomic_load((void *)address, bits / 8, order, CODE);                    \
    }                                                                                              \
    HOOK void __tsan_atomic##bits##_store(word##bits *address, word##bits value, int order);       \
    HOOK void __tsan_atomic##bits##_store(word##bits *address, word##bits value, int order)        \
    {                                                                                              \
        atomic_store(address, bits / 8, value, order, CODE);                                       \
    }                                                                                              \
    MODIFY(bits, exchange, exchanged, false)                                                       \
    MODIFY(bits, fetch_add, added, order == __ATOMIC_RELAXED)                                      \
    MODIFY(bits, fetch_sub, subtracted, order == __ATOMIC_RELAXED)                                 \
    MODIFY(bits, fetch_or, united, false)                                                          \
    MODIFY(bits, fetch_and, intersected, false)                                                    \
    EXCHANGE(bits, strong)                                                                         \
    EXCHANGE(bits, weak)                                                                           \
    HOOK word##bits __tsan_atomic##bits##_compare_exchange_val(                                    \
        word##bits *address, word##bits expected, word##bits desired, int order, int failure);     \
    HOOK word##bits __tsan_atomic##bits##_compare_exchange_val(                                    \
        word##bits *address, word##bits expected, word##bits desired, int order, int failure)      \
    {                                                                                              \
        uint64_t value = expected;                                                                 \
        atomic_compare_exchange(address, bits / 8, &value, desired, order, failure, CODE);         \
        return (word##bits)value;                                                                  \
    }

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

HOOK void __tsan_atomic_thread_fence(int order);
HOOK void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    model_fail("a fence, which is not modelled");
}

HOOK void __tsan_atomic_signal_fence(int order);
HOOK void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

/* ---- Not used -------------------------------------------------------------------------------- */

HOOK void __tsan_init(void);
HOOK void __tsan_init(void)
{
}

HOOK void __tsan_func_entry(void *caller);
HOOK void __tsan_func_entry(void *caller)
{
    (void)caller;
}

HOOK void __tsan_func_exit(void);
HOOK void __tsan_func_exit(void)
{
}
