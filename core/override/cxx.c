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
#include "api/hardened.h"
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
static SLOW_PATH void *new_slow(size_t size, size_t alignment, enum form form)
{
    for (;;) {
        void *block = hardened_is_on() ? hardened_alloc(size, alignment, form)
                                       : alloc_aligned(size, alignment);
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
    return LIKELY(block != NULL) ? block : new_slow(size, MIN_ALIGNMENT, FORM_NEW);
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
    return LIKELY(block != NULL) ? block : new_slow(size, MIN_ALIGNMENT, FORM_NEW);
}

ALWAYS_INLINE void *new_aligned(size_t size, size_t alignment)
{
    void *block = hardened_is_on() ? NULL : alloc_aligned(size, alignment);
    return LIKELY(block != NULL) ? block : new_slow(size, alignment, FORM_NEW);
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

/* By their own names: the exported ones may lead to somebody else's. */
#define OWN(name) ALIAS_OF(name) __attribute__((visibility("hidden")))
extern OWN(_Znwm) void *own_new(size_t size);
extern OWN(_ZnwmSt11align_val_t) void *own_new_aligned(size_t size, size_t alignment);

/* ---- new[] ----------------------------------------------------------------------------------- */

/* In the hardened preset the two are told apart; not if it is the program's new that serves. */
OPERATOR void *_Znam(size_t size)
{
    if (hardened_is_on() && _Znwm == own_new)
        return new_slow(size, MIN_ALIGNMENT, FORM_NEW_ARRAY);
    return _Znwm(size);
}

OPERATOR void *_ZnamSt11align_val_t(size_t size, size_t alignment)
{
    if (hardened_is_on() && _ZnwmSt11align_val_t == own_new_aligned)
        return new_slow(size, alignment, FORM_NEW_ARRAY);
    return _ZnwmSt11align_val_t(size, alignment);
}

/* ---- new, new[]: nothrow --------------------------------------------------------------------- */

extern OWN(_Znam) void *own_new_array(size_t size);
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

ALWAYS_INLINE void *new_nothrow(size_t size, size_t alignment, enum form form)
{
    if (hardened_is_on())
        return hardened_alloc(size, alignment, form);
    return alignment <= MIN_ALIGNMENT ? alloc(size) : alloc_aligned(size, alignment);
}

OPERATOR void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag)
{
    if (UNLIKELY(_Znwm != own_new))
        return next_nothrow("_ZnwmRKSt9nothrow_t", size, tag);
    return new_nothrow(size, MIN_ALIGNMENT, FORM_NEW);
}

OPERATOR void *_ZnamRKSt9nothrow_t(size_t size, const void *tag)
{
    if (UNLIKELY(_Znam != own_new_array || _Znwm != own_new))
        return next_nothrow("_ZnamRKSt9nothrow_t", size, tag);
    return new_nothrow(size, MIN_ALIGNMENT, FORM_NEW_ARRAY);
}

OPERATOR void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *tag)
{
    if (UNLIKELY(_ZnwmSt11align_val_t != own_new_aligned))
        return next_nothrow_aligned("_ZnwmSt11align_val_tRKSt9nothrow_t", size, alignment, tag);
    return new_nothrow(size, alignment, FORM_NEW);
}

OPERATOR void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *tag)
{
    if (UNLIKELY(
            _ZnamSt11align_val_t != own_new_array_aligned ||
            _ZnwmSt11align_val_t != own_new_aligned))
        return next_nothrow_aligned("_ZnamSt11align_val_tRKSt9nothrow_t", size, alignment, tag);
    return new_nothrow(size, alignment, FORM_NEW_ARRAY);
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
 * or span knows. In the hardened preset it has to be true; but what the program's new has made is
 * the business of its delete. */
OPERATOR HOT_ENTRY void _ZdlPv(void *block)
{
    release_by(block, delete_far);
}

ALWAYS_INLINE void delete_aligned(void *block, size_t alignment, enum form form, const char *call)
{
    if (hardened_is_on()) {
        hardened_expect(block, SIZE_MAX, alignment, call);
        hardened_free(block, form | FORM_ALIGNED);
    } else {
        release(block);
    }
}

static const char delete_call[] = "operator delete", delete_array_call[] = "operator delete[]";

OPERATOR void _ZdlPvSt11align_val_t(void *block, size_t alignment)
{
    delete_aligned(block, alignment, FORM_NEW, delete_call);
}

extern OWN(_ZdlPv) void own_delete(void *block);
extern OWN(_ZdlPvSt11align_val_t) void own_delete_aligned(void *block, size_t alignment);

OPERATOR void _ZdaPv(void *block)
{
    if (hardened_is_on() && _ZdlPv == own_delete)
        hardened_free(block, FORM_NEW_ARRAY);
    else
        _ZdlPv(block);
}

OPERATOR void _ZdaPvSt11align_val_t(void *block, size_t alignment)
{
    if (hardened_is_on() && _ZdlPvSt11align_val_t == own_delete_aligned)
        delete_aligned(block, alignment, FORM_NEW_ARRAY, delete_array_call);
    else
        _ZdlPvSt11align_val_t(block, alignment);
}

extern OWN(_ZdaPv) void own_delete_array(void *block);
extern OWN(_ZdaPvSt11align_val_t) void own_delete_array_aligned(void *block, size_t alignment);

/* The form calls the one that the standard says, `called`, after what it is told was looked at, if
 * that is ours. */
#define DELETE(form, called, own, size, call, ...)                                                 \
    OPERATOR void form(void *block, __VA_ARGS__)                                                   \
    {                                                                                              \
        if (hardened_is_on() && (size) != SIZE_MAX && called == own)                               \
            hardened_expect(block, size, 0, call);                                                 \
        called(block);                                                                             \
    }

#define DELETE_ALIGNED(form, called, own, size, call, ...)                                         \
    OPERATOR void form(void *block, __VA_ARGS__)                                                   \
    {                                                                                              \
        if (hardened_is_on() && (size) != SIZE_MAX && called == own)                               \
            hardened_expect(block, size, 0, call);                                                 \
        called(block, alignment);                                                                  \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
/* NOLINTBEGIN(misc-unused-parameters) */
DELETE(_ZdlPvm, _ZdlPv, own_delete, size, delete_call, size_t size)
DELETE(_ZdaPvm, _ZdaPv, own_delete_array, size, delete_array_call, size_t size)
DELETE(_ZdlPvRKSt9nothrow_t, _ZdlPv, own_delete, SIZE_MAX, delete_call, const void *tag)
DELETE(_ZdaPvRKSt9nothrow_t, _ZdaPv, own_delete_array, SIZE_MAX, delete_array_call, const void *tag)
DELETE_ALIGNED(
    _ZdlPvmSt11align_val_t, _ZdlPvSt11align_val_t, own_delete_aligned, size, delete_call,
    size_t size, size_t alignment)
DELETE_ALIGNED(
    _ZdaPvmSt11align_val_t, _ZdaPvSt11align_val_t, own_delete_array_aligned, size,
    delete_array_call, size_t size, size_t alignment)
DELETE_ALIGNED(
    _ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdlPvSt11align_val_t, own_delete_aligned, SIZE_MAX,
    delete_call, size_t alignment, const void *tag)
DELETE_ALIGNED(
    _ZdaPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_t, own_delete_array_aligned, SIZE_MAX,
    delete_array_call, size_t alignment, const void *tag)
/* NOLINTEND(misc-unused-parameters) */
#pragma GCC diagnostic pop
