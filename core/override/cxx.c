/* The C++ operators new and delete, under the names that 64-bit Linux gives them.
 *
 * The library does not depend on libstdc++: what it needs of the C++ runtime, the new_handler and
 * the throwing of bad_alloc, it refers to weakly. A program without them that runs out of memory
 * in a throwing new ends with a message.
 */
#include "api/alloc.h"
#include "os/fatal.h"
#include "override/override.h"

/* std::get_new_handler() and std::__throw_bad_alloc(), present in libstdc++ and libc++. */
typedef void (*new_handler)(void);
extern new_handler _ZSt15get_new_handlerv(void) __attribute__((weak));
extern void _ZSt17__throw_bad_allocv(void) __attribute__((weak));

/* A nothrow new must not let the exception of a new_handler out, but C cannot catch it: so the
 * handler is called only by the throwing forms, and the nothrow forms return NULL at once. */
static SLOW_PATH void *new_slow(size_t size, size_t alignment)
{
    for (;;) {
        void *block = alloc_aligned(size, alignment);
        if (block)
            return block;
        new_handler handler = _ZSt15get_new_handlerv ? _ZSt15get_new_handlerv() : NULL;
        if (handler) {
            handler();
            continue;
        }
        if (_ZSt17__throw_bad_allocv)
            _ZSt17__throw_bad_allocv();
        fatal("operator new: out of memory");
    }
}

ALWAYS_INLINE void *new_block(size_t size)
{
    void *block = alloc_hit(size);
    if (LIKELY(block != NULL))
        return block;
    return new_slow(size, MIN_ALIGNMENT);
}

ALWAYS_INLINE void *new_aligned(size_t size, size_t alignment)
{
    void *block = alloc_aligned(size, alignment);
    return LIKELY(block != NULL) ? block : new_slow(size, alignment);
}

/* ---- new, new[]: plain, nothrow, aligned, aligned and nothrow; each with a hint of how hot the
 * memory is, which is not used ----------------------------------------------------------------- */

EXPORT HOT_ENTRY void *_Znwm(size_t size)
{
    return new_block(size);
}

EXPORT void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag)
{
    (void)tag;
    return alloc(size);
}

EXPORT void *_ZnwmSt11align_val_t(size_t size, size_t alignment)
{
    return new_aligned(size, alignment);
}

EXPORT void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *tag)
{
    (void)tag;
    return alloc_aligned(size, alignment);
}

EXPORT ALIAS_OF(_Znwm) void *_Znam(size_t size);
EXPORT ALIAS_OF(_ZnwmRKSt9nothrow_t) void *_ZnamRKSt9nothrow_t(size_t size, const void *tag);
EXPORT ALIAS_OF(_ZnwmSt11align_val_t) void *_ZnamSt11align_val_t(size_t size, size_t alignment);
EXPORT ALIAS_OF(_ZnwmSt11align_val_tRKSt9nothrow_t) void *_ZnamSt11align_val_tRKSt9nothrow_t(
    size_t size, size_t alignment, const void *tag);

/* Only few compilers call these, so they are no hit paths: small rather than fast. */
EXPORT void *_Znwm12__hot_cold_t(size_t size, unsigned char hint)
{
    (void)hint;
    return new_slow(size, MIN_ALIGNMENT);
}

EXPORT void *_ZnwmRKSt9nothrow_t12__hot_cold_t(size_t size, const void *tag, unsigned char hint)
{
    (void)tag;
    (void)hint;
    return alloc_aligned(size, MIN_ALIGNMENT);
}

EXPORT void *_ZnwmSt11align_val_t12__hot_cold_t(size_t size, size_t alignment, unsigned char hint)
{
    (void)hint;
    return new_aligned(size, alignment);
}

EXPORT void *_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t(
    size_t size, size_t alignment, const void *tag, unsigned char hint)
{
    (void)tag;
    (void)hint;
    return alloc_aligned(size, alignment);
}

EXPORT ALIAS_OF(_Znwm12__hot_cold_t) void *_Znam12__hot_cold_t(size_t size, unsigned char hint);
EXPORT ALIAS_OF(_ZnwmRKSt9nothrow_t12__hot_cold_t) void *_ZnamRKSt9nothrow_t12__hot_cold_t(
    size_t size, const void *tag, unsigned char hint);
EXPORT ALIAS_OF(_ZnwmSt11align_val_t12__hot_cold_t) void *_ZnamSt11align_val_t12__hot_cold_t(
    size_t size, size_t alignment, unsigned char hint);
EXPORT ALIAS_OF(_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t) void
    *_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t(
        size_t size, size_t alignment, const void *tag, unsigned char hint);

/* ---- delete, delete[]: plain, nothrow, sized, aligned and their mixtures ----------------------
 */

/* What a delete is told beyond the pointer, size and alignment, it does not need: the block's slab
 * or span knows. All forms take the pointer first, so all are one function. */
EXPORT HOT_ENTRY void _ZdlPv(void *block)
{
    release(block);
}

#define DELETE(name, ...) EXPORT __attribute__((alias("_ZdlPv"))) void name(__VA_ARGS__)

#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wattribute-alias"
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif
DELETE(_ZdaPv, void *block);
DELETE(_ZdlPvm, void *block, size_t size);
DELETE(_ZdaPvm, void *block, size_t size);
DELETE(_ZdlPvRKSt9nothrow_t, void *block, const void *tag);
DELETE(_ZdaPvRKSt9nothrow_t, void *block, const void *tag);
DELETE(_ZdlPvSt11align_val_t, void *block, size_t alignment);
DELETE(_ZdaPvSt11align_val_t, void *block, size_t alignment);
DELETE(_ZdlPvmSt11align_val_t, void *block, size_t size, size_t alignment);
DELETE(_ZdaPvmSt11align_val_t, void *block, size_t size, size_t alignment);
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, void *block, size_t alignment, const void *tag);
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, void *block, size_t alignment, const void *tag);
#pragma GCC diagnostic pop
