/* base/bits: bitmaps compared with an array of bool, and the arithmetic of macros.h. */
#include "unit.h"

#include "base/bits.h"

enum { BITS = 320, WORDS = BITS / 64 };

struct model {
    uint64_t map[WORDS + 1]; /* the last word must stay as it is */
    bool bit[BITS];
};

static const uint64_t canary = 0x5ca1ab1e0ddba11u;

static void compare(const struct model *model)
{
    for (unsigned i = 0; i < BITS; i++)
        CHECK(bitmap_test(model->map, i) == model->bit[i]);
    CHECK(model->map[WORDS] == canary);
}

static unsigned naive_find(const struct model *model, unsigned from, unsigned limit, bool set)
{
    while (from < limit && model->bit[from] != set)
        from++;
    return from < limit ? from : limit;
}

static void change(struct model *model, uint64_t *random)
{
    unsigned first = unit_below(random, BITS), count = 1 + unit_below(random, BITS - first);
    bool set = unit_below(random, 2);
    if (unit_below(random, 3) == 0) {
        (set ? bitmap_set : bitmap_clear)(model->map, first);
        count = 1;
    } else {
        if (unit_below(random, 2))
            count = 1 + unit_below(random, (unsigned)size_min(count, 9));
        if (set)
            bitmap_set_range(model->map, first, count);
        for (unsigned i = first; i < first + count && !set; i++)
            bitmap_clear(model->map, i);
    }
    for (unsigned i = first; i < first + count; i++)
        model->bit[i] = set;
}

static void bitmaps_agree_with_arrays_of_bool(void **state)
{
    (void)state;
    uint64_t random = 7;
    struct model model = {.map = {[WORDS] = canary}};
    for (int step = 0; step < 20000; step++) {
        change(&model, &random);
        compare(&model);
        unsigned first = unit_below(&random, BITS), count = 1 + unit_below(&random, BITS - first);
        unsigned expected = 0;
        for (unsigned i = first; i < first + count; i++)
            expected += model.bit[i];
        CHECK(bitmap_count_range(model.map, first, count) == expected);
        unsigned limit = first + unit_below(&random, BITS - first + 1);
        for (int set = 0; set < 2; set++)
            CHECK(
                bitmap_find(model.map, first, limit, set) == naive_find(&model, first, limit, set));
    }
}

static void word_masks_cover_exactly_their_range(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 130; first++) {
        for (unsigned count = 1; count < 130; count++) {
            for (unsigned word = first / 64; word <= (first + count - 1) / 64; word++) {
                uint64_t mask = bitmap_word_mask(word, first, count);
                for (unsigned bit = 0; bit < 64; bit++) {
                    unsigned position = word * 64 + bit;
                    bool inside = position >= first && position < first + count;
                    CHECK(((mask >> bit) & 1) == inside);
                }
            }
        }
    }
}

static void counts_and_lowest_bits_of_words(void **state)
{
    (void)state;
    uint64_t random = 3;
    assert_int_equal(bits_count(0), 0);
    assert_int_equal(bits_count(UINT64_MAX), 64);
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(bits_count((uint64_t)1 << i), 1);
        assert_int_equal(bits_lowest(UINT64_MAX << i), i);
    }
    for (int step = 0; step < 10000; step++) {
        uint64_t word = unit_random(&random) & unit_random(&random);
        unsigned expected = 0;
        for (uint64_t rest = word; rest; rest >>= 1)
            expected += rest & 1;
        CHECK(bits_count(word) == expected);
    }
}

static void rounding_and_powers_of_two(void **state)
{
    (void)state;
    for (size_t value = 0; value < 300; value++) {
        for (size_t power = 1; power <= 64; power *= 2) {
            CHECK(round_up(value, power) == (value + power - 1) / power * power);
            CHECK(round_down(value, power) == value / power * power);
        }
        unsigned ones = bits_count(value);
        CHECK(is_power_of_two(value) == (ones == 1));
    }
    assert_true(is_power_of_two(SIZE_MAX / 2 + 1));
    assert_false(is_power_of_two(SIZE_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bitmaps_agree_with_arrays_of_bool),
        cmocka_unit_test(word_masks_cover_exactly_their_range),
        cmocka_unit_test(counts_and_lowest_bits_of_words),
        cmocka_unit_test(rounding_and_powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
