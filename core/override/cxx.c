/* The C++ operators new and delete, under the names that 64-bit Linux gives them.
 *
 * A program may replace some of them, and by the standard the others then call what it has put
 * there: all forms end in new and delete of one object, plain or aligned. So the forms here call
 * each other by their exported names, as those of libstdc++ do, and all are weak, for programs that
 * are linked with hakmem statically. Else a program that puts a header before its blocks, and
 * replaces nothing but new and delete, would hand the inside of a block to our sized delete.
 *
 * The library does not depend on libstdc++: what it needs of the C++ runtime, the new_handler and
 * the throwing of bad_alloc, it refers to weakly. A program without them that runs out of memory
 * in a throwing new ends with a message.
 */
#include <dlfcn.h>

#include "api/alloc.h"
#include "os/fatal.h"
#include "override/override.h"

/* std::get_new_handler() and std::__throw_bad_alloc(), present in libstdc++ and libc++. */
typedef void (*new_handler)(void);
extern new_handler _ZSt15get_new_handlerv(void) __attribute__((weak));
extern void _ZSt17__throw_bad_allocv(void) __attribute__((weak));

/* Absent from statically linked programs. */
#pragma weak dlsym

/* May be replaced; a call is one jump. */
#if defined(__clang__)
#define OPERATOR __attribute__((visibility("default"), weak))
#else
#define OPERATOR __attribute__((visibility("default"), weak, noplt))
#endif

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

/* As alloc_long; it leads on by jumps alone, so that the stack of a sample begins at its caller. */
static __attribute__((noinline)) void *new_long(size_t size, struct heap_front *heap)
{
    bool due = false;
    void *block = magazine_pop_long(heap, front_class(heap, size), &due);
    if (UNLIKELY(due))
        return alloc_due(block, size, MIN_ALIGNMENT, false);
    return LIKELY(block != NULL) ? block : new_slow(size, MIN_ALIGNMENT);
}

ALWAYS_INLINE void *new_block(size_t size)
{
    struct heap_front *heap = thread_heap;
    if (is_long(size))
        return new_long(size, heap);
    bool due = false;
    void *block = alloc_hit(heap, size, &due);
    if (UNLIKELY(due))
        return alloc_due(block, size, MIN_ALIGNMENT, false);
    return LIKELY(block != NULL) ? block : new_slow(size, MIN_ALIGNMENT);
}

ALWAYS_INLINE void *new_aligned(size_t size, size_t alignment)
{
    void *block = alloc_aligned(size, alignment);
    return LIKELY(block != NULL) ? block : new_slow(size, alignment);
}

/* ---- new of one object ----------------------------------------------------------------------- */

OPERATOR HOT_ENTRY void *_Znwm(size_t size)
{
    return new_block(size);
}

OPERATOR void *_ZnwmSt11align_val_t(size_t size, size_t alignment)
{
    return new_aligned(size, alignment);
}

/* ---- new[] ----------------------------------------------------------------------------------- */

OPERATOR void *_Znam(size_t size)
{
    return _Znwm(size);
}

OPERATOR void *_ZnamSt11align_val_t(size_t size, size_t alignment)
{
    return _ZnwmSt11align_val_t(size, alignment);
}

/* ---- new, new[]: nothrow --------------------------------------------------------------------- */

/* By their own names: those above may lead to somebody else's. */
#define OWN(name) ALIAS_OF(name) __attribute__((visibility("hidden")))
extern OWN(_Znwm) void *own_new(size_t size);
extern OWN(_Znam) void *own_new_array(size_t size);
extern OWN(_ZnwmSt11align_val_t) void *own_new_aligned(size_t size, size_t alignment);
extern OWN(_ZnamSt11align_val_t) void *own_new_array_aligned(size_t size, size_t alignment);

/* The program has replaced a throwing form, whose exceptions C++ has to catch: the nothrow form of
 * the C++ library does that. */
static SLOW_PATH void *next_nothrow(const char *name, size_t size, const void *tag)
{
    void *(*next)(size_t, const void *) = NULL;
    if (dlsym)
        *(void **)&next = dlsym(RTLD_NEXT, name);
    return next ? next(size, tag) : _Znwm(size);
}

static SLOW_PATH void *next_nothrow_aligned(
    const char *name, size_t size, size_t alignment, const void *tag)
{
    void *(*next)(size_t, size_t, const void *) = NULL;
    if (dlsym)
        *(void **)&next = dlsym(RTLD_NEXT, name);
    return next ? next(size, alignment, tag) : _ZnwmSt11align_val_t(size, alignment);
}

OPERATOR void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag)
{
    if (UNLIKELY(_Znwm != own_new))
        return next_nothrow("_ZnwmRKSt9nothrow_t", size, tag);
    return alloc(size);
}

OPERATOR void *_ZnamRKSt9nothrow_t(size_t size, const void *tag)
{
    if (UNLIKELY(_Znam != own_new_array || _Znwm != own_new))
        return next_nothrow("_ZnamRKSt9nothrow_t", size, tag);
    return alloc(size);
}

OPERATOR void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *tag)
{
    if (UNLIKELY(_ZnwmSt11align_val_t != own_new_aligned))
        return next_nothrow_aligned("_ZnwmSt11align_val_tRKSt9nothrow_t", size, alignment, tag);
    return alloc_aligned(size, alignment);
}

OPERATOR void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *tag)
{
    if (UNLIKELY(
            _ZnamSt11align_val_t != own_new_array_aligned ||
            _ZnwmSt11align_val_t != own_new_aligned))
        return next_nothrow_aligned("_ZnamSt11align_val_tRKSt9nothrow_t", size, alignment, tag);
    return alloc_aligned(size, alignment);
}

/* ---- new, new[] with a hint of how hot the memory is, which is not used -----------------------
 */

OPERATOR void *_Znwm12__hot_cold_t(size_t size, unsigned char hint)
{
    (void)hint;
    return _Znwm(size);
}

OPERATOR void *_Znam12__hot_cold_t(size_t size, unsigned char hint)
{
    (void)hint;
    return _Znam(size);
}

OPERATOR void *_ZnwmRKSt9nothrow_t12__hot_cold_t(size_t size, const void *tag, unsigned char hint)
{
    (void)hint;
    return _ZnwmRKSt9nothrow_t(size, tag);
}

OPERATOR void *_ZnamRKSt9nothrow_t12__hot_cold_t(size_t size, const void *tag, unsigned char hint)
{
    (void)hint;
    return _ZnamRKSt9nothrow_t(size, tag);
}

OPERATOR void *_ZnwmSt11align_val_t12__hot_cold_t(size_t size, size_t alignment, unsigned char hint)
{
    (void)hint;
    return _ZnwmSt11align_val_t(size, alignment);
}

OPERATOR void *_ZnamSt11align_val_t12__hot_cold_t(size_t size, size_t alignment, unsigned char hint)
{
    (void)hint;
    return _ZnamSt11align_val_t(size, alignment);
}

OPERATOR void *_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t(
    size_t size, size_t alignment, const void *tag, unsigned char hint)
{
    (void)hint;
    return _ZnwmSt11align_val_tRKSt9nothrow_t(size, alignment, tag);
}

OPERATOR void *_ZnamSt11align_val_tRKSt9nothrow_t12__hot_cold_t(
    size_t size, size_t alignment, const void *tag, unsigned char hint)
{
    (void)hint;
    return _ZnamSt11align_val_tRKSt9nothrow_t(size, alignment, tag);
}

/* ---- delete, delete[]: plain, nothrow, sized, aligned and their mixtures ----------------------
 */

/* What a delete is told beyond the pointer, size and alignment, it does not need: the block's slab
 * or span knows. */
OPERATOR HOT_ENTRY void _ZdlPv(void *block)
{
    release(block);
}

OPERATOR void _ZdlPvSt11align_val_t(void *block, size_t alignment)
{
    (void)alignment;
    release(block);
}

/* The form calls the one that the standard says. */
#define DELETE(form, called, ...)                                                                  \
    OPERATOR void form(void *block, __VA_ARGS__)                                                   \
    {                                                                                              \
        called;                                                                                    \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
/* NOLINTBEGIN(misc-unused-parameters) */
OPERATOR void _ZdaPv(void *block)
{
    _ZdlPv(block);
}

OPERATOR void _ZdaPvSt11align_val_t(void *block, size_t alignment)
{
    _ZdlPvSt11align_val_t(block, alignment);
}

DELETE(_ZdlPvm, _ZdlPv(block), size_t size)
DELETE(_ZdaPvm, _ZdaPv(block), size_t size)
DELETE(_ZdlPvRKSt9nothrow_t, _ZdlPv(block), const void *tag)
DELETE(_ZdaPvRKSt9nothrow_t, _ZdaPv(block), const void *tag)
DELETE(
    _ZdlPvmSt11align_val_t, _ZdlPvSt11align_val_t(block, alignment), size_t size, size_t alignment)
DELETE(
    _ZdaPvmSt11align_val_t, _ZdaPvSt11align_val_t(block, alignment), size_t size, size_t alignment)
DELETE(
    _ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdlPvSt11align_val_t(block, alignment), size_t alignment,
    const void *tag)
DELETE(
    _ZdaPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_t(block, alignment), size_t alignment,
    const void *tag)
/* NOLINTEND(misc-unused-parameters) */
#pragma GCC diagnostic pop
