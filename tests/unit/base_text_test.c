/* base/text: every way to append, compared with snprintf, and the behaviour of a full buffer. */
#include "unit.h"

#include <inttypes.h>

#include "base/text.h"

static const uint64_t interesting[] = {
    0, 1, 9, 10, 99, 100, 12345, UINT32_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};

/* One text with all forms of the number, and the same by snprintf. */
static void compare_number(uint64_t value, unsigned width)
{
    char actual[256], expected[256];
    struct text text;
    text_init(&text, actual, sizeof actual);
    text_unsigned(&text, value);
    text_char(&text, '|');
    text_signed(&text, (int64_t)value);
    text_char(&text, '|');
    text_hex(&text, value);
    text_char(&text, '|');
    text_unsigned_padded(&text, value, width);
    text_char(&text, '|');
    text_string_padded(&text, "name", width);
    text_char(&text, '|');
    int length = snprintf(
        expected, sizeof expected, "%" PRIu64 "|%" PRId64 "|0x%" PRIx64 "|%*" PRIu64 "|%-*s|",
        value, (int64_t)value, value, (int)width, value, (int)width, "name");
    assert_string_equal(text_terminate(&text), expected);
    assert_int_equal(text.length, length);
    assert_int_equal(text_stored(&text), length);
}

static void numbers_print_as_by_snprintf(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (unsigned width = 0; width < 40; width += 3)
        for (size_t i = 0; i < ARRAY_LENGTH(interesting); i++)
            compare_number(interesting[i], width);
    for (int i = 0; i < 1000; i++)
        compare_number(unit_random(&random) >> unit_below(&random, 64), unit_below(&random, 30));
}

static void text_is_cut_at_every_capacity(void **state)
{
    (void)state;
    static const char whole[] = "abc -42 0xff     7 x   ";
    for (size_t capacity = 0; capacity <= sizeof whole + 3; capacity++) {
        char buffer[64];
        struct text text;
        memset(buffer, '#', sizeof buffer);
        text_init(&text, buffer, capacity);
        text_string(&text, "abc ");
        text_signed(&text, -42);
        text_char(&text, ' ');
        text_hex(&text, 255);
        text_unsigned_padded(&text, 7, 6);
        text_char(&text, ' ');
        text_string_padded(&text, "x", 4);
        assert_ptr_equal(text_terminate(&text), buffer);
        assert_int_equal(text.length, sizeof whole - 1);
        size_t stored = capacity == 0 ? 0 : size_min(capacity - 1, sizeof whole - 1);
        assert_int_equal(text_stored(&text), stored);
        assert_memory_equal(buffer, whole, stored);
        if (capacity)
            assert_int_equal(buffer[stored], '\0');
        assert_true(unit_all_bytes(buffer + capacity, sizeof buffer - capacity, '#'));
    }
}

static void no_buffer_is_a_way_to_measure(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, NULL, 0);
    text_string(&text, "some text");
    assert_null(text_terminate(&text));
    assert_int_equal(text_stored(&text), 0);
    assert_int_equal(text.length, strlen("some text"));
}

static void foreign_text_stays_on_its_line(void **state)
{
    (void)state;
    char buffer[32];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_foreign(&text, "a\nb\x1b[1m\t\x7f\xc3\xa4\0z|", 13);
    assert_string_equal(text_terminate(&text), "a?b?[1m??\xc3\xa4?z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(foreign_text_stays_on_its_line),
        cmocka_unit_test(numbers_print_as_by_snprintf),
        cmocka_unit_test(text_is_cut_at_every_capacity),
        cmocka_unit_test(no_buffer_is_a_way_to_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
