/* base/pressure: what may stay free, by the policy or by a number of bytes; the armed flag; the
 * account. */
#include "unit.h"

#include "base/policy.h"
#include "base/pressure.h"

/* Ends what pressure_set_kept_bytes began; that no caller wants to. */
#define BY_POLICY (SIZE_MAX - 1)

static void the_policy_decides_at_first(void **state)
{
    (void)state;
    assert_int_equal(pressure_kept_bytes(), 0);
    policy.retain_percent = 25;
    assert_int_equal(pressure_keep(400 * MIB), 100 * MIB);
    policy.retain_percent = 0;
    assert_int_equal(pressure_keep(400 * MIB), 256 * KIB);
    policy.retain_percent = 1000;
    assert_int_equal(pressure_keep(100 * GIB), 1000 * GIB);
    assert_int_equal(pressure_keep(0), 256 * KIB);
    assert_int_equal(pressure_bound(0), 256 * KIB);
    assert_int_equal(pressure_bound(MIB), MIB);
}

/* Then it stands for all bounds, also below the least that is worth a system call. */
static void a_number_of_bytes_takes_its_place(void **state)
{
    (void)state;
    static const size_t numbers[] = {0, 1, 100 * KIB, 3 * MIB, SIZE_MAX - 2, SIZE_MAX};
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
        ATOMIC_STORE_RELAXED(&pressure_armed, 0);
        pressure_set_kept_bytes(numbers[i]);
        assert_true(pressure_is_armed());
        assert_int_equal(pressure_kept_bytes(), numbers[i]);
        assert_int_equal(pressure_keep(GIB), numbers[i]);
        assert_int_equal(pressure_bound(0), numbers[i]);
        assert_int_equal(pressure_bound(GIB), numbers[i]);
    }
    /* The one number that means something else counts as its neighbour. */
    pressure_set_kept_bytes(BY_POLICY);
    assert_int_equal(pressure_kept_bytes(), SIZE_MAX);
}

/* What came free is known for two rounds, and what a look finds, until it is settled. */
static void the_flag_stays_until_it_is_taken_down(void **state)
{
    (void)state;
    ATOMIC_STORE_RELAXED(&pressure_armed, 0);
    assert_false(pressure_is_armed());
    pressure_arm();
    pressure_settle();
    assert_true(pressure_is_armed() && pressure_is_armed_anew());
    pressure_begin_round();
    assert_false(pressure_is_armed());
    pressure_arm_still();
    pressure_settle();
    assert_true(pressure_is_armed() && !pressure_is_armed_anew());
    pressure_begin_round();
    assert_int_equal(pressure_armed, 0);
    pressure_arm_still();
    assert_true(pressure_is_armed());
    pressure_settle();
    assert_int_equal(pressure_armed, 0);
}

static void the_account_adds_up(void **state)
{
    (void)state;
    uint64_t before = pressure_total();
    pressure_account(0);
    pressure_account(4096);
    pressure_account(5 * GIB);
    assert_int_equal(pressure_total() - before, 4096 + 5 * GIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_policy_decides_at_first),
        cmocka_unit_test(a_number_of_bytes_takes_its_place),
        cmocka_unit_test(the_flag_stays_until_it_is_taken_down),
        cmocka_unit_test(the_account_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
