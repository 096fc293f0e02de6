/* See text.h. */
#include "base/text.h"

void text_init(struct text *text, char *buffer, size_t capacity)
{
    text->buffer = buffer;
    text->capacity = capacity;
    text->length = 0;
}

void text_char(struct text *text, char c)
{
    if (text->length + 1 < text->capacity)
        text->buffer[text->length] = c;
    text->length++;
}

void text_string(struct text *text, const char *string)
{
    while (*string)
        text_char(text, *string++);
}

void text_foreign(struct text *text, const char *piece, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)piece[i];
        if (c < ' ' || c == 0x7f)
            text_char(text, '?');
        else
            text_char(text, piece[i]);
    }
}

static unsigned digits_of(uint64_t value, unsigned base, char digits[64])
{
    unsigned count = 0;
    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    return count;
}

void text_unsigned_padded(struct text *text, uint64_t value, unsigned width)
{
    char digits[64];
    unsigned count = digits_of(value, 10, digits);
    for (unsigned i = count; i < width; i++)
        text_char(text, ' ');
    while (count)
        text_char(text, digits[--count]);
}

void text_unsigned(struct text *text, uint64_t value)
{
    text_unsigned_padded(text, value, 0);
}

void text_signed(struct text *text, int64_t value)
{
    if (value < 0)
        text_char(text, '-');
    text_unsigned(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void text_hex(struct text *text, uint64_t value)
{
    char digits[64];
    unsigned count = digits_of(value, 16, digits);
    text_string(text, "0x");
    while (count)
        text_char(text, digits[--count]);
}

void text_string_padded(struct text *text, const char *string, unsigned width)
{
    size_t start = text->length;
    text_string(text, string);
    while (text->length - start < width)
        text_char(text, ' ');
}

size_t text_stored(const struct text *text)
{
    if (text->capacity == 0)
        return 0;
    return size_min(text->length, text->capacity - 1);
}

const char *text_terminate(struct text *text)
{
    if (text->capacity)
        text->buffer[text_stored(text)] = '\0';
    return text->buffer;
}
