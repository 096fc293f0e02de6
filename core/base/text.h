/* Text without stdio: appends to a caller's buffer, never allocates, keeps counting when full.
 *
 * Messages are written while the heap may be broken or locked, so nothing here may call malloc.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/macros.h"

struct text {
    char *buffer;
    size_t capacity; /* bytes in `buffer`, one of which is kept for the NUL */
    size_t length;   /* of the whole text, with the part that did not fit */
};

void text_init(struct text *text, char *buffer, size_t capacity);
void text_char(struct text *text, char c);
void text_string(struct text *text, const char *string);
void text_unsigned(struct text *text, uint64_t value);

/* Appends foreign text on one line: control characters become question marks. */
void text_foreign(struct text *text, const char *piece, size_t length);

void text_signed(struct text *text, int64_t value);
void text_hex(struct text *text, uint64_t value); /* with 0x */

/* Appends `value` right-aligned, or `string` left-aligned, in `width` columns. */
void text_unsigned_padded(struct text *text, uint64_t value, unsigned width);
void text_string_padded(struct text *text, const char *string, unsigned width);

/* The text, up to the capacity, NUL-terminated. */
const char *text_terminate(struct text *text);
size_t text_stored(const struct text *text);

#endif
