/* memcpy, memset, strcpy, sprintf and their kin, which see before they write whether that fits the
 * block they write to: no free has to come, and nothing is written over.
 *
 *     to -> entry of the page map: none -> the C library's copy (stack, variables, files)
 *                                  slab -> the block's word: live? so many bytes left? -> the same
 *
 * They take the place of the C library's for the program and its libraries, in the shared library
 * alone. The C library's own calls do not pass here, nor what compilers make of short copies, nor
 * those of this library, whose linker leads them to the __wrap_ names below: free clears blocks
 * that are free already.
 *
 * Resolvers of indirect functions call them before anything of this library is relocated, and so
 * before it reaches the C library's: the way to a copy of bytes needs neither. They read what is
 * atomic or owned by who owns the block, so any thread may call them, signal handlers too, and no
 * lock is taken.
 */

/* The definitions below are no calls to be fortified. */
#undef _FORTIFY_SOURCE

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "api/alloc.h"
#include "api/block.h"
#include "hardened/front.h"
#include "os/os.h"

/* Callers have the C library's declarations; some names have none. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT __attribute__((visibility("default")))
#define SAME_AS(name) __attribute__((visibility("default"), alias(#name)))

/* ---- The copies themselves ------------------------------------------------------------------- */

/* The C library's own, by names that nobody else has: the first of them fortified programs call. A
 * memmove of another library may be made of memcpy, and lead back here. NULL until this library is
 * relocated, before any constructor runs. */
#define LIBC(name) __asm__(#name) __attribute__((weak))
extern void *libc_move(void *to, const void *from, size_t size, size_t room) LIBC(__memmove_chk);
extern void *libc_set(void *to, int byte, size_t size, size_t room) LIBC(__memset_chk);
extern wchar_t *libc_set_wide(wchar_t *, wchar_t, size_t, size_t room) LIBC(__wmemset_chk);
extern int libc_print(
    char *to, size_t size, int flag, size_t room, const char *format, va_list arguments)
    LIBC(__vsnprintf_chk);
/* The fortified one ends the text first. */
extern int libc_print_all(char *to, const char *format, va_list arguments) LIBC(_IO_vsprintf);

/* The compiler must not see that these two copy and set: it would call those that call them. */
static SLOW_PATH void *move_bytes(void *to, const void *from, size_t size)
{
    char *at = to;
    const char *read = from;
    bool forwards = (uintptr_t)at - (uintptr_t)read >= size;
    for (size_t i = 0; i < size; i++) {
        size_t place = forwards ? i : size - 1 - i;
        at[place] = read[place];
        __asm__ volatile("" : : : "memory");
    }
    return to;
}

static SLOW_PATH void *set_bytes(void *to, int byte, size_t size)
{
    char *at = to;
    for (size_t i = 0; i < size; i++) {
        at[i] = (char)byte;
        __asm__ volatile("" : : : "memory");
    }
    return to;
}

/* No limit, of which clang must not know: it would call the function without one, which is here. */
ALWAYS_INLINE size_t any_room(void)
{
    size_t room = SIZE_MAX;
    __asm__("" : "+r"(room));
    return room;
}

ALWAYS_INLINE void *move(void *to, const void *from, size_t size)
{
    return LIKELY(libc_move) ? libc_move(to, from, size, any_room()) : move_bytes(to, from, size);
}

ALWAYS_INLINE void *set_to(void *to, int byte, size_t size)
{
    return LIKELY(libc_set) ? libc_set(to, byte, size, any_room()) : set_bytes(to, byte, size);
}

/* This library's own. */
void *__wrap_memcpy(void *to, const void *from, size_t size)
{
    return move(to, from, size);
}

void *__wrap_memmove(void *, const void *, size_t) __attribute__((alias("__wrap_memcpy")));

void *__wrap_memset(void *to, int byte, size_t size)
{
    return set_to(to, byte, size);
}

/* ---- The check ------------------------------------------------------------------------------- */

/* Whether `size` bytes may be written there: to a live block in a slab that has as many left, or to
 * memory that is no block's. False: perhaps not. */
ALWAYS_INLINE bool fits(const void *to, size_t size)
{
    const char *at = tags_strip(to);
    uintptr_t entry = page_map_find(at);
    if (LIKELY(!entry))
        return true;
    const struct superslab *superslab = (const struct superslab *)(entry - ENTRY_SUPERSLAB);
    struct slab *slab;
    if (UNLIKELY(!(entry & ENTRY_SUPERSLAB)) ||
        UNLIKELY(!(slab = ATOMIC_LOAD_ACQUIRE(&superslab->slab_of_unit[superslab_unit_of(at)]))))
        return false;
    const struct size_class *layout = &size_classes[slab->size_class];
    size_t offset = (size_t)(at - slab->base), length = layout->size;
    size_t index = offset * layout->reciprocal >> RECIPROCAL_SHIFT;
    if (UNLIKELY(index >= slab->blocks))
        return false;
    uint32_t word = ATOMIC_LOAD_RELAXED(slab_word(slab, (unsigned)index));
    size_t inside = offset - index * length;
    return LIKELY(word_state(word) == WORD_LIVE) && LIKELY(size <= length) &&
           LIKELY(inside + size <= word_size(word));
}

static bool fits_big(const struct big *big, const char *at, size_t size)
{
    size_t page = os_page_size(), length = big->mapped - word_size(big->word);
    uintptr_t base = (uintptr_t)big->region.base, address = (uintptr_t)at;
    if (address - base < length)
        return big->live && size <= length - (address - base);
    /* Others may own what else lies in the 2 MiB in which the block starts. */
    return address < round_down(base, page) || address >= round_up(base + length, page);
}

/* The mistake, and the start of the block that it was made with. */
static enum defect find_defect(const char *at, size_t size, const char **block)
{
    struct slab *slab = slab_lookup(at);
    const struct region *region = page_map_lookup(at);
    if (!slab && region && region->kind == REGION_BIG) {
        *block = region->base;
        return !((const struct big *)region)->live ? DEFECT_WRITTEN
               : at < *block                       ? DEFECT_UNDERFLOW
                                                   : DEFECT_OVERFLOW;
    }
    *block = at;
    if (!slab)
        return DEFECT_WRITTEN;
    bool before = at < slab->base;
    size_t length = size_classes[slab->size_class].size;
    size_t index = before ? 0 : size_min(slab_index_at(slab, at), slab->blocks - 1u);
    uint32_t word = ATOMIC_LOAD_RELAXED(slab_word(slab, (unsigned)index));
    *block = slab_block(slab, index);
    if (word_state(word) != WORD_LIVE)
        return word_state(word) == WORD_FREED ? DEFECT_WRITTEN : DEFECT_STRAY;
    /* Bytes that begin behind those asked for and end in the next block were meant for that. */
    const char *next = *block + length;
    if (!before && index + 1 < slab->blocks && at > *block + word_size(word) && at + size > next) {
        *block = next;
        before = true;
    }
    return before ? DEFECT_UNDERFLOW : DEFECT_OVERFLOW;
}

/* Aborts unless the bytes may be written. */
static SLOW_PATH void look_closely(void *to, size_t size, const char *call)
{
    const char *at = tags_strip(to), *block;
    const struct region *region = page_map_lookup(at);
    bool big = region && region->kind == REGION_BIG;
    if (!size || (big && fits_big((const struct big *)region, at, size)))
        return;
    enum defect defect = find_defect(at, size, &block);
    fatal_pointer(call, defect, tags_like(block, to), NULL, 0);
}

ALWAYS_INLINE void check(void *to, size_t size, const char *call)
{
    if (UNLIKELY(!fits(to, size)))
        look_closely(to, size, call);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* Calls of their own, so that those that are called most have nothing to keep meanwhile. */
static SLOW_PATH void *move_closely(void *to, const void *from, size_t size, const char *call)
{
    look_closely(to, size, call);
    return move(to, from, size);
}

static SLOW_PATH void *set_closely(void *to, int byte, size_t size)
{
    look_closely(to, size, "memset");
    return set_to(to, byte, size);
}

/* Old programs count on it that memcpy moves what overlaps, as glibc's did. */
EXPORT void *memcpy(void *to, const void *from, size_t size)
{
    return LIKELY(fits(to, size)) ? move(to, from, size) : move_closely(to, from, size, "memcpy");
}

EXPORT void *memmove(void *to, const void *from, size_t size)
{
    return LIKELY(fits(to, size)) ? move(to, from, size) : move_closely(to, from, size, "memmove");
}

EXPORT void *mempcpy(void *to, const void *from, size_t size)
{
    check(to, size, "mempcpy");
    return (char *)move(to, from, size) + size;
}

EXPORT void *memccpy(void *to, const void *from, int last, size_t size)
{
    const char *found = memchr(from, last, size);
    size_t length = found ? (size_t)(found + 1 - (const char *)from) : size;
    check(to, length, "memccpy");
    move(to, from, length);
    return found ? (char *)to + length : NULL;
}

EXPORT void *memset(void *to, int byte, size_t size)
{
    return LIKELY(fits(to, size)) ? set_to(to, byte, size) : set_closely(to, byte, size);
}

EXPORT void bcopy(const void *from, void *to, size_t size)
{
    check(to, size, "bcopy");
    move(to, from, size);
}

EXPORT void bzero(void *to, size_t size)
{
    check(to, size, "bzero");
    set_to(to, 0, size);
}

EXPORT void explicit_bzero(void *to, size_t size)
{
    check(to, size, "explicit_bzero");
    set_to(to, 0, size);
    __asm__ volatile("" : : "r"(to) : "memory");
}

/* ---- Strings, of bytes and of wide characters ------------------------------------------------ */

/* More than any block has, if it is too much. */
ALWAYS_INLINE size_t bytes_of(size_t count, size_t width)
{
    return count > SIZE_MAX / width ? SIZE_MAX : count * width;
}

#define STRINGS(type, length_of, length_at_most, cpy, pcpy, ncpy, pncpy, cat, ncat)                \
    EXPORT type *pcpy(type *to, const type *from)                                                  \
    {                                                                                              \
        size_t length = length_of(from);                                                           \
        check(to, (length + 1) * sizeof(type), #pcpy);                                             \
        return (type *)move(to, from, (length + 1) * sizeof(type)) + length;                       \
    }                                                                                              \
    EXPORT type *cpy(type *to, const type *from)                                                   \
    {                                                                                              \
        size_t size = (length_of(from) + 1) * sizeof(type);                                        \
        check(to, size, #cpy);                                                                     \
        return move(to, from, size);                                                               \
    }                                                                                              \
    EXPORT type *cat(type *to, const type *from)                                                   \
    {                                                                                              \
        type *end = to + length_of(to);                                                            \
        size_t size = (length_of(from) + 1) * sizeof(type);                                        \
        check(end, size, #cat);                                                                    \
        move(end, from, size);                                                                     \
        return to;                                                                                 \
    }                                                                                              \
    EXPORT type *ncat(type *to, const type *from, size_t most)                                     \
    {                                                                                              \
        type *end = to + length_of(to);                                                            \
        size_t length = length_at_most(from, most);                                                \
        check(end, (length + 1) * sizeof(type), #ncat);                                            \
        move(end, from, length * sizeof(type));                                                    \
        end[length] = 0;                                                                           \
        return to;                                                                                 \
    }                                                                                              \
    EXPORT type *pncpy(type *to, const type *from, size_t size)                                    \
    {                                                                                              \
        size_t length = length_at_most(from, size);                                                \
        check(to, bytes_of(size, sizeof(type)), #pncpy);                                           \
        move(to, from, length * sizeof(type));                                                     \
        set_to(to + length, 0, (size - length) * sizeof(type));                                    \
        return to + length;                                                                        \
    }                                                                                              \
    EXPORT type *ncpy(type *to, const type *from, size_t size)                                     \
    {                                                                                              \
        size_t length = length_at_most(from, size);                                                \
        check(to, bytes_of(size, sizeof(type)), #ncpy);                                            \
        move(to, from, length * sizeof(type));                                                     \
        set_to(to + length, 0, (size - length) * sizeof(type));                                    \
        return to;                                                                                 \
    }

STRINGS(char, strlen, strnlen, strcpy, stpcpy, strncpy, stpncpy, strcat, strncat)
STRINGS(wchar_t, wcslen, wcsnlen, wcscpy, wcpcpy, wcsncpy, wcpncpy, wcscat, wcsncat)

EXPORT wchar_t *wmemcpy(wchar_t *to, const wchar_t *from, size_t count)
{
    check(to, bytes_of(count, sizeof *to), "wmemcpy");
    return move(to, from, count * sizeof *to);
}

EXPORT wchar_t *wmemmove(wchar_t *to, const wchar_t *from, size_t count)
{
    check(to, bytes_of(count, sizeof *to), "wmemmove");
    return move(to, from, count * sizeof *to);
}

EXPORT wchar_t *wmempcpy(wchar_t *to, const wchar_t *from, size_t count)
{
    check(to, bytes_of(count, sizeof *to), "wmempcpy");
    return (wchar_t *)move(to, from, count * sizeof *to) + count;
}

EXPORT wchar_t *wmemset(wchar_t *to, wchar_t value, size_t count)
{
    check(to, bytes_of(count, sizeof *to), "wmemset");
    return libc_set_wide(to, value, count, any_room());
}

/* ---- Formatted text -------------------------------------------------------------------------- */

/* Writes as far as there is room: how long the text is shows then. */
static int print(char *to, size_t size, const char *format, va_list arguments, const char *call)
{
    bool all = LIKELY(fits(to, size));
    if (!all)
        check(to, size_min(size, 1), call);
    size_t room = all ? size : size_min(size, alloc_object_size(to));
    int length = libc_print(to, room, 0, any_room(), format, arguments);
    if (UNLIKELY(room < size) && length >= 0 && (size_t)length >= room)
        look_closely(to, size_min((size_t)length + 1, size), call);
    return length;
}

EXPORT int vsnprintf(char *to, size_t size, const char *format, va_list arguments)
{
    return print(to, size, format, arguments, "vsnprintf");
}

/* Writes all. Into a block only if it fits: how long the text is has to be known before, since old
 * programs append to what they print ("%s..." of the same block), which nothing may begin to write
 * over. */
static int print_all(char *to, const char *format, va_list arguments, const char *call)
{
    if (UNLIKELY(!fits(to, INT_MAX))) {
        va_list twice;
        va_copy(twice, arguments);
        int length = libc_print(NULL, 0, 0, any_room(), format, twice);
        va_end(twice);
        check(to, length < 0 ? 1 : (size_t)length + 1, call);
    }
    return libc_print_all(to, format, arguments);
}

EXPORT int vsprintf(char *to, const char *format, va_list arguments)
{
    return print_all(to, format, arguments, "vsprintf");
}

#define PRINT(...)                                                                                 \
    va_list arguments;                                                                             \
    va_start(arguments, format);                                                                   \
    int length = __VA_ARGS__;                                                                      \
    va_end(arguments);                                                                             \
    return length

EXPORT int snprintf(char *to, size_t size, const char *format, ...)
{
    PRINT(print(to, size, format, arguments, "snprintf"));
}

EXPORT int sprintf(char *to, const char *format, ...)
{
    PRINT(print_all(to, format, arguments, "sprintf"));
}

/* ---- Second names of glibc ------------------------------------------------------------------- */

SAME_AS(mempcpy) void *__mempcpy(void *to, const void *from, size_t size);
SAME_AS(stpcpy) char *__stpcpy(char *to, const char *from);
SAME_AS(stpncpy) char *__stpncpy(char *to, const char *from, size_t size);
