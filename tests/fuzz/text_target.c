/* The target `text`: an input is a capacity and then pieces of text, which core/base/text.c
 * appends, cut off at the capacity. It is compared with what snprintf makes of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "system.h"

#include "base/text.h"

enum { RIGHT_BYTES = 1 << 20, PIECE_BYTES_MAX = 300 };

enum piece { CHAR, STRING, UNSIGNED, SIGNED, HEX, UNSIGNED_PADDED, STRING_PADDED, PIECES };

static char right[RIGHT_BYTES];
static size_t right_length;

static uint64_t input_number(struct input *input)
{
    uint64_t number = 0;

    for (unsigned bytes = input_byte(input) % 9; bytes > 0; bytes--)
        number = number << 8 | input_byte(input);
    return number;
}

/* Letters: what a string may hold besides NUL makes no difference here. */
static void input_string(struct input *input, char string[PIECE_BYTES_MAX])
{
    size_t length = input_byte(input);

    for (size_t i = 0; i < length; i++)
        string[i] = (char)(input_byte(input) | 1);
    string[length] = '\0';
}

#define EXPECT(...)                                                                                \
    (right_length +=                                                                               \
     (size_t)snprintf(right + right_length, RIGHT_BYTES - right_length, __VA_ARGS__))

static void append(struct text *text, struct input *input)
{
    enum piece piece = input_byte(input) % PIECES;
    uint64_t number = piece == STRING ? 0 : input_number(input);
    unsigned width = piece >= UNSIGNED_PADDED ? input_byte(input) : 0;
    char string[PIECE_BYTES_MAX] = "";

    if (piece == STRING || piece == STRING_PADDED)
        input_string(input, string);
    if (fuzz_explain)
        fprintf(stderr, "piece %u, number %" PRIu64 ", width %u\n", (unsigned)piece, number, width);
    switch (piece) {
    case CHAR:
        text_char(text, (char)(number | 1));
        EXPECT("%c", (char)(number | 1));
        break;
    case STRING:
        text_string(text, string);
        EXPECT("%s", string);
        break;
    case UNSIGNED:
        text_unsigned(text, number);
        EXPECT("%" PRIu64, number);
        break;
    case SIGNED:
        text_signed(text, (int64_t)number);
        EXPECT("%" PRId64, (int64_t)number);
        break;
    case HEX:
        text_hex(text, number);
        EXPECT("0x%" PRIx64, number);
        break;
    case UNSIGNED_PADDED:
        text_unsigned_padded(text, number, width);
        EXPECT("%*" PRIu64, (int)width, number);
        break;
    default:
        text_string_padded(text, string, width);
        EXPECT("%-*s", (int)width, string);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    system_reset();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct input input = {.next = bytes, .left = length};
    size_t capacity = (size_t)input_byte(&input) << input_byte(&input) % 4;
    /* The byte behind it tells of a write too far. */
    char *buffer = malloc(capacity + 1);
    struct text text;
    size_t stored;

    FUZZ_CHECK(buffer != NULL);
    buffer[capacity] = 'x';
    right_length = 0;
    right[0] = '\0';
    text_init(&text, buffer, capacity);
    while (input.left > 0 && right_length < RIGHT_BYTES / 2)
        append(&text, &input);
    stored = capacity == 0 ? 0 : right_length < capacity ? right_length : capacity - 1;
    FUZZ_CHECK(text_terminate(&text) == buffer);
    FUZZ_CHECK(text.length == right_length && text_stored(&text) == stored);
    FUZZ_CHECK(buffer[capacity] == 'x');
    FUZZ_CHECK(memcmp(buffer, right, stored) == 0);
    FUZZ_CHECK(capacity == 0 || buffer[stored] == '\0');
    free(buffer);
    return 0;
}
