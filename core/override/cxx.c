/* The C++ operators new and delete, under the names that 64-bit Linux gives them.
 *
 * A program may replace some of them, and by the standard the others then call its replacements:
 * all forms end in new and delete of one object, plain or aligned. So the forms here call each
 * other by their exported names, as those of libstdc++ do, and all are weak, for programs that are
 * linked with hakmem statically. Else a program that replaces only new and delete, and puts a
 * header before its blocks, would pass the inside of a block to our sized delete.
 *
 * The library does not depend on libstdc++: it refers weakly to the new_handler and to the throwing
 * of bad_alloc, and if they were missing at the start, it looks for them when memory runs out. A
 * program without them that runs out of memory in a throwing new ends with a message.
 */
#include <dlfcn.h>

#include "api/alloc.h"
#include "os/symbol.h"
#include "override/override.h"
#include "override/runtime.h"

/* Can be replaced; a call is one jump. */
#if defined(__clang__)
#define OPERATOR __attribute__((visibility("default"), weak))
#else
#define OPERATOR __attribute__((visibility("default"), weak, noplt))
#endif

OPERATOR HOT_ENTRY void *_Znwm(size_t size);
OPERATOR HOT_ENTRY void _ZdlPv(void *block);
OPERATOR void *_Znam(size_t size);
OPERATOR void _ZdaPv(void *block);
OPERATOR void *_ZnwmSt11align_val_t(size_t size, size_t alignment);
OPERATOR void _ZdlPvSt11align_val_t(void *block, size_t alignment);
OPERATOR void *_ZnamSt11align_val_t(size_t size, size_t alignment);
OPERATOR void _ZdaPvSt11align_val_t(void *block, size_t alignment);

/* Our definitions by names of their own: those above may lead to the program's. */
#define OWN(name) ALIAS_OF(name) __attribute__((visibility("hidden")))
extern OWN(_Znwm) void *own_new(size_t size);
extern OWN(_ZdlPv) void own_delete(void *block);
extern OWN(_Znam) void *own_new_array(size_t size);
extern OWN(_ZdaPv) void own_delete_array(void *block);
extern OWN(_ZnwmSt11align_val_t) void *own_new_aligned(size_t size, size_t alignment);
extern OWN(_ZdlPvSt11align_val_t) void own_delete_aligned(void *block, size_t alignment);
extern OWN(_ZnamSt11align_val_t) void *own_new_array_aligned(size_t size, size_t alignment);
extern OWN(_ZdaPvSt11align_val_t) void own_delete_array_aligned(void *block, size_t alignment);

/* ---- Forms, which the hardened library tells apart ---------------------------------------------
 */

/* A program may replace some operators and not the others, above all one that counts calls: our
 * delete has to take the blocks that its new gets from malloc. So kinds of blocks are told apart
 * only if all operators are ours. */
static SLOW_PATH bool find_out(uint8_t *known)
{
    bool ours = _Znwm == own_new && _ZdlPv == own_delete && _Znam == own_new_array &&
                _ZdaPv == own_delete_array && _ZnwmSt11align_val_t == own_new_aligned &&
                _ZdlPvSt11align_val_t == own_delete_aligned &&
                _ZnamSt11align_val_t == own_new_array_aligned &&
                _ZdaPvSt11align_val_t == own_delete_array_aligned;
    ATOMIC_STORE_RELAXED(known, ours ? 1 : 2);
    return ours;
}

ALWAYS_INLINE bool are_ours(void)
{
    static uint8_t known; /* atomic relaxed, any thread: 0: not yet, 1: they are, 2: they are not */
    uint8_t ours = ATOMIC_LOAD_RELAXED(&known);
    return ours ? ours == 1 : find_out(&known);
}

ALWAYS_INLINE void *new_by(size_t size, size_t alignment, enum form form)
{
    return HARDENED ? hardened_alloc(size, alignment, are_ours() ? form : FORM_MALLOC)
                    : alloc_aligned(size, alignment);
}

ALWAYS_INLINE void delete_by(void *block, enum form form)
{
    release_by(block, HARDENED && !are_ours() ? FORM_ANY : form);
}

/* Checks what a delete is told; SIZE_MAX: no size, 0: no alignment. */
ALWAYS_INLINE void expect_form(void *block, size_t size, size_t alignment, enum form form)
{
    if (HARDENED && are_ours())
        hardened_expect(
            block, size, alignment, form,
            form == FORM_NEW ? "operator delete" : "operator delete[]");
}

/* ---- Slow paths of new -------------------------------------------------------------------------
 */

static SLOW_PATH void *new_slow(size_t size, size_t alignment, enum form form)
{
    const void *caller = __builtin_return_address(0);
    if (!is_power_of_two(alignment))
        runtime_throw_bad_alloc(caller, "operator new: alignment is no power of two");
    for (;;) {
        void *block = new_by(size, alignment, form);
        if (block)
            return block;
        new_handler handler = runtime_handler(caller);
        if (!handler)
            runtime_throw_bad_alloc(caller, "operator new: out of memory");
        handler();
    }
}

static __attribute__((noinline)) void *new_missed(size_t size)
{
    return new_slow(size, MIN_ALIGNMENT, FORM_NEW);
}

static __attribute__((noinline)) void *new_long(size_t size, struct heap_front *heap)
{
    return alloc_long_or(size, heap, new_missed);
}

ALWAYS_INLINE void *new_aligned(size_t size, size_t alignment)
{
    bool fast = LIKELY(is_power_of_two(alignment)) && !HARDENED;
    void *block = fast ? alloc_aligned(size, alignment) : NULL;
    return LIKELY(block != NULL) ? block : new_slow(size, alignment, FORM_NEW);
}

/* ---- new of one object ----------------------------------------------------------------------- */

OPERATOR HOT_ENTRY void *_Znwm(size_t size)
{
    return HARDENED ? new_missed(size) : alloc_short_or(size, new_long, new_missed);
}

OPERATOR void *_ZnwmSt11align_val_t(size_t size, size_t alignment)
{
    return new_aligned(size, alignment);
}

/* ---- new[] ----------------------------------------------------------------------------------- */

OPERATOR void *_Znam(size_t size)
{
    if (HARDENED && are_ours())
        return new_slow(size, MIN_ALIGNMENT, FORM_NEW_ARRAY);
    return _Znwm(size);
}

OPERATOR void *_ZnamSt11align_val_t(size_t size, size_t alignment)
{
    if (HARDENED && are_ours())
        return new_slow(size, alignment, FORM_NEW_ARRAY);
    return _ZnwmSt11align_val_t(size, alignment);
}

/* ---- new, new[]: nothrow --------------------------------------------------------------------- */

/* If the program has replaced a throwing form, C++ code has to catch its exceptions: the nothrow
 * form of the C++ library does that. */
static SLOW_PATH void *next_nothrow(const char *name, size_t size, const void *tag)
{
    void *(*next)(size_t, const void *);
    return symbol_find(RTLD_NEXT, &next, name) ? next(size, tag) : _Znwm(size);
}

static SLOW_PATH void *next_nothrow_aligned(
    const char *name, size_t size, size_t alignment, const void *tag)
{
    void *(*next)(size_t, size_t, const void *);
    return symbol_find(RTLD_NEXT, &next, name) ? next(size, alignment, tag)
                                               : _ZnwmSt11align_val_t(size, alignment);
}

static SLOW_PATH void *nothrow_slow(size_t size, enum form form, const void *tag)
{
    void *(*next)(size_t, const void *);
    void *block = new_by(size, MIN_ALIGNMENT, form);
    if (block)
        return block;
    *(void **)&next =
        runtime_nothrow(form == FORM_NEW ? "_ZnwmRKSt9nothrow_t" : "_ZnamRKSt9nothrow_t");
    return next ? next(size, tag) : NULL;
}

static SLOW_PATH void *nothrow_aligned(
    size_t size, size_t alignment, enum form form, const void *tag)
{
    void *(*next)(size_t, size_t, const void *);
    if (!is_power_of_two(alignment))
        return NULL;
    void *block = new_by(size, alignment, form);
    if (block)
        return block;
    *(void **)&next = runtime_nothrow(
        form == FORM_NEW ? "_ZnwmSt11align_val_tRKSt9nothrow_t"
                         : "_ZnamSt11align_val_tRKSt9nothrow_t");
    return next ? next(size, alignment, tag) : NULL;
}

ALWAYS_INLINE void *new_nothrow(size_t size, enum form form, const void *tag)
{
    struct heap_front *heap = thread_heap;
    bool due = false;
    if (HARDENED)
        return nothrow_slow(size, form, tag);
    void *block = is_long(size) ? NULL : alloc_hit(heap, size, &due);
    if (UNLIKELY(due))
        return alloc_due(block, size, MIN_ALIGNMENT, false);
    return LIKELY(block != NULL) ? block : nothrow_slow(size, form, tag);
}

OPERATOR void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag)
{
    if (UNLIKELY(_Znwm != own_new))
        return next_nothrow("_ZnwmRKSt9nothrow_t", size, tag);
    return new_nothrow(size, FORM_NEW, tag);
}

OPERATOR void *_ZnamRKSt9nothrow_t(size_t size, const void *tag)
{
    if (UNLIKELY(_Znam != own_new_array || _Znwm != own_new))
        return next_nothrow("_ZnamRKSt9nothrow_t", size, tag);
    return new_nothrow(size, FORM_NEW_ARRAY, tag);
}

OPERATOR void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *tag)
{
    if (UNLIKELY(_ZnwmSt11align_val_t != own_new_aligned))
        return next_nothrow_aligned("_ZnwmSt11align_val_tRKSt9nothrow_t", size, alignment, tag);
    return nothrow_aligned(size, alignment, FORM_NEW, tag);
}

OPERATOR void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t alignment, const void *tag)
{
    if (UNLIKELY(
            _ZnamSt11align_val_t != own_new_array_aligned ||
            _ZnwmSt11align_val_t != own_new_aligned))
        return next_nothrow_aligned("_ZnamSt11align_val_tRKSt9nothrow_t", size, alignment, tag);
    return nothrow_aligned(size, alignment, FORM_NEW_ARRAY, tag);
}

/* ---- new, new[] with a hint of how hot the memory is, which is not used -----------------------
 */

#define HINTED(name, arguments, ...)                                                               \
    OPERATOR void *name##12__hot_cold_t(__VA_ARGS__, unsigned char hint)                           \
    {                                                                                              \
        (void)hint;                                                                                \
        return name arguments;                                                                     \
    }

HINTED(_Znwm, (size), size_t size)
HINTED(_Znam, (size), size_t size)
HINTED(_ZnwmRKSt9nothrow_t, (size, tag), size_t size, const void *tag)
HINTED(_ZnamRKSt9nothrow_t, (size, tag), size_t size, const void *tag)
HINTED(_ZnwmSt11align_val_t, (size, alignment), size_t size, size_t alignment)
HINTED(_ZnamSt11align_val_t, (size, alignment), size_t size, size_t alignment)
HINTED(
    _ZnwmSt11align_val_tRKSt9nothrow_t, (size, alignment, tag), size_t size, size_t alignment,
    const void *tag)
HINTED(
    _ZnamSt11align_val_tRKSt9nothrow_t, (size, alignment, tag), size_t size, size_t alignment,
    const void *tag)

/* ---- delete, delete[]: plain, nothrow, sized, aligned and their mixtures ----------------------
 */

/* A delete does not need its size and alignment: the block's slab or record has them. The hardened
 * library checks them. */
OPERATOR HOT_ENTRY void _ZdlPv(void *block)
{
    delete_by(block, FORM_NEW);
}

ALWAYS_INLINE void delete_aligned(void *block, size_t alignment, enum form form)
{
    expect_form(block, SIZE_MAX, alignment, form);
    delete_by(block, form | FORM_ALIGNED);
}

OPERATOR void _ZdlPvSt11align_val_t(void *block, size_t alignment)
{
    delete_aligned(block, alignment, FORM_NEW);
}

OPERATOR void _ZdaPv(void *block)
{
    if (HARDENED && are_ours())
        hardened_free(block, FORM_NEW_ARRAY);
    else
        _ZdlPv(block);
}

OPERATOR void _ZdaPvSt11align_val_t(void *block, size_t alignment)
{
    if (HARDENED && are_ours())
        delete_aligned(block, alignment, FORM_NEW_ARRAY);
    else
        _ZdlPvSt11align_val_t(block, alignment);
}

/* Each form calls the one that the standard says; sized forms check the size before. */
#define DELETE(name, called, ...)                                                                  \
    OPERATOR void name(void *block, __VA_ARGS__)                                                   \
    {                                                                                              \
        (void)tag;                                                                                 \
        called;                                                                                    \
    }

#define DELETE_SIZED(name, form, called, ...)                                                      \
    OPERATOR void name(void *block, __VA_ARGS__)                                                   \
    {                                                                                              \
        (void)size;                                                                                \
        expect_form(block, size, 0, form);                                                         \
        called;                                                                                    \
    }

DELETE(_ZdlPvRKSt9nothrow_t, _ZdlPv(block), const void *tag)
DELETE(_ZdaPvRKSt9nothrow_t, _ZdaPv(block), const void *tag)
DELETE(
    _ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdlPvSt11align_val_t(block, alignment), size_t alignment,
    const void *tag)
DELETE(
    _ZdaPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_t(block, alignment), size_t alignment,
    const void *tag)
DELETE_SIZED(_ZdlPvm, FORM_NEW, _ZdlPv(block), size_t size)
DELETE_SIZED(_ZdaPvm, FORM_NEW_ARRAY, _ZdaPv(block), size_t size)
DELETE_SIZED(
    _ZdlPvmSt11align_val_t, FORM_NEW, _ZdlPvSt11align_val_t(block, alignment), size_t size,
    size_t alignment)
DELETE_SIZED(
    _ZdaPvmSt11align_val_t, FORM_NEW_ARRAY, _ZdaPvSt11align_val_t(block, alignment), size_t size,
    size_t alignment)
