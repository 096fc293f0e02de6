/* The C library's copies under the names by which copies.c calls them, for musl, which has only the
 * usual ones: the next definitions behind this library are meant. They are found by a constructor,
 * since to find them takes a lock of the dynamic linker, which may hold it while it calls malloc.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <wchar.h>

#include "base/atomic.h"
#include "base/macros.h"
#include "os/symbol.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* NULL before. Atomic relaxed, any thread. */
static void *(*next_move)(void *to, const void *from, size_t size);
static void *(*next_set)(void *to, int byte, size_t size);
static wchar_t *(*next_set_wide)(wchar_t *to, wchar_t value, size_t count);
static int (*next_print)(char *to, size_t size, const char *format, va_list arguments);
static int (*next_print_all)(char *to, const char *format, va_list arguments);

__attribute__((constructor)) static void find_copies(void)
{
    symbol_find(RTLD_NEXT, &next_print, "vsnprintf");
    symbol_find(RTLD_NEXT, &next_print_all, "vsprintf");
    symbol_find(RTLD_NEXT, &next_set_wide, "wmemset");
    symbol_find(RTLD_NEXT, &next_set, "memset");
    symbol_find(RTLD_NEXT, &next_move, "memmove");
}

/* What the dynamic linker and this library copy before; the constructor's own result, too. */
void *__memmove_chk(void *to, const void *from, size_t size, size_t room)
{
    void *(*next)(void *, const void *, size_t) = ATOMIC_LOAD_RELAXED(&next_move);
    (void)room;
    if (LIKELY(next != NULL))
        return next(to, from, size);
    volatile char *at = to;
    const char *read = from;
    bool forwards = (uintptr_t)to - (uintptr_t)from >= size;
    for (size_t i = 0; i < size; i++) {
        size_t place = forwards ? i : size - 1 - i;
        at[place] = read[place];
    }
    return to;
}

void *__memset_chk(void *to, int byte, size_t size, size_t room)
{
    void *(*next)(void *, int, size_t) = ATOMIC_LOAD_RELAXED(&next_set);
    (void)room;
    if (LIKELY(next != NULL))
        return next(to, byte, size);
    volatile char *at = to;
    for (size_t i = 0; i < size; i++)
        at[i] = (char)byte;
    return to;
}

wchar_t *__wmemset_chk(wchar_t *to, wchar_t value, size_t count, size_t room)
{
    (void)room;
    return next_set_wide(to, value, count);
}

int __vsnprintf_chk(
    char *to, size_t size, int flag, size_t room, const char *format, va_list arguments)
{
    (void)flag;
    (void)room;
    return next_print(to, size, format, arguments);
}

int _IO_vsprintf(char *to, const char *format, va_list arguments)
{
    return next_print_all(to, format, arguments);
}
