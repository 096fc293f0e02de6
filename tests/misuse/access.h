/* How programs write to and read from memory that they should not: by plain stores and loads, or by
 * memcpy, as BY_MEMCPY says, which the build defines for each program. */
#ifndef ACCESS_H
#define ACCESS_H

#include "misuse.h"

#ifndef BY_MEMCPY
#define BY_MEMCPY 0
#endif

#define MIB ((size_t)1 << 20)

/* At a time. */
enum { PIECE = 4096 };

/* Writes so many bytes, of which none is zero. */
static inline void write_bytes(void *where, size_t count)
{
    static const char letters[PIECE] = {[0 ... PIECE - 1] = 0x41};
    volatile char *bytes = hide(where);
    for (size_t i = 0; !BY_MEMCPY && i < count; i++)
        bytes[i] = 0x41;
    for (size_t i = 0; BY_MEMCPY && i < count; i += PIECE)
        memcpy(hide((char *)where + i), letters, count - i < PIECE ? count - i : PIECE);
}

/* Reads so many bytes, and says whether all are zero. */
static inline void read_bytes(const void *where, size_t count)
{
    static char copy[PIECE];
    const volatile char *bytes = hide(where);
    char seen = 0;
    for (size_t i = 0; !BY_MEMCPY && i < count; i++)
        seen |= bytes[i];
    for (size_t i = 0; BY_MEMCPY && i < count; i += PIECE) {
        size_t piece = count - i < PIECE ? count - i : PIECE;
        memcpy(hide(copy), hide((const char *)where + i), piece);
        for (size_t j = 0; j < piece; j++)
            seen |= copy[j];
    }
    has_read(seen == 0);
}

#endif
