/* base/nearest: the distance of names, against its definition on small ones. */
#include "unit.h"

#include "base/nearest.h"

/* The definition, without a table: slow, for short names. */
static unsigned plain_distance(const char *a, const char *b)
{
    if (!*a || !*b)
        return (unsigned)(strlen(a) + strlen(b));
    unsigned replace = plain_distance(a + 1, b + 1) + (*a != *b);
    unsigned remove = plain_distance(a + 1, b) + 1, insert = plain_distance(a, b + 1) + 1;
    unsigned edit = remove < insert ? remove : insert;
    return replace < edit ? replace : edit;
}

static void random_name(uint64_t *random, char name[8])
{
    size_t length = unit_below(random, 7);
    for (size_t i = 0; i < length; i++)
        name[i] = (char)('a' + unit_below(random, 3));
    name[length] = '\0';
}

static void distances_are_as_defined(void **state)
{
    (void)state;
    uint64_t random = 1;
    char a[8], b[8];
    for (int i = 0; i < 2000; i++) {
        random_name(&random, a);
        random_name(&random, b);
        assert_int_equal(nearest_distance(a, strlen(a), b), plain_distance(a, b));
    }
}

static void the_length_is_the_callers(void **state)
{
    (void)state;
    assert_int_equal(nearest_distance("stats=1", 5, "stats"), 0);
    assert_int_equal(nearest_distance("stats", 0, "stats"), 5);
}

static void long_names_are_cut_off(void **state)
{
    (void)state;
    char a[1000], b[1000];
    memset(a, 'a', sizeof a);
    memset(b, 'a', sizeof b);
    b[sizeof b - 1] = '\0';
    memset(a + NEAREST_LETTERS, 'x', sizeof a - NEAREST_LETTERS);
    assert_int_equal(nearest_distance(a, sizeof a, b), 0);
    assert_int_equal(nearest_distance(a, sizeof a, ""), NEAREST_LETTERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_are_as_defined),
        cmocka_unit_test(the_length_is_the_callers),
        cmocka_unit_test(long_names_are_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
