/* Numbers in the tables of exceptions and debuggers: of fixed length, of seven bits a byte, and
 * addresses in the forms that compilers use. The only possible error is that the piece ends early.
 */
#ifndef TRACE_ENCODED_H
#define TRACE_ENCODED_H

#include "base/macros.h"

/* The part of a table not yet read; all of it is readable memory. */
struct bytes {
    const uint8_t *at, *end;
    bool is_bad; /* a read went past the end, or the form is unknown */
};

ALWAYS_INLINE uint8_t read_byte(struct bytes *bytes)
{
    if (LIKELY(bytes->at < bytes->end))
        return *bytes->at++;
    bytes->is_bad = true;
    return 0;
}

uint64_t read_fixed(struct bytes *bytes, size_t size);
uint64_t read_leb(struct bytes *bytes, bool is_signed);

/* Forms of an address: its length, and its base. */
enum { ENCODED_ABSOLUTE = 0, ENCODED_UNSIGNED_4 = 3, ENCODED_SIGNED_4 = 0x0b };
enum { ENCODED_8 = 4, ENCODED_FROM_HERE = 0x10, ENCODED_FORMAT = 0x0f, ENCODED_BASE = 0x70 };

uintptr_t read_encoded(struct bytes *bytes, uint8_t encoding);

#endif
