/* Owns the test of a library without core/trace: what asks for observation is refused, and all else
 * works, the one line of a misuse too. It is found in place of libhakmem.so, with options set that
 * ask for samples and for the report of a crash.
 */
#include "semantics_support.h"

#include <signal.h>

static void samples_are_refused(void **state)
{
    long value = -1;
    (void)state;
    assert_int_equal(hakmem_option_set("sample_kib", 64), ENOMEM);
    assert_int_equal(hakmem_option_set("sample_kib", 0), 0);
    assert_int_equal(hakmem_option_get("sample_kib", &value), 0);
    assert_int_equal(value, 0);
    assert_int_equal(hakmem_profile_write("/nowhere"), ENODATA);
}

static void blocks_of_all_tiers_come_and_go(void **state)
{
    (void)state;
    for (size_t size = 1; size < 16 * MIB; size = size * 3 / 2 + 1) {
        char *block = calloc(1, size);
        assert_non_null(block);
        assert_int_equal(block[size - 1], 0);
        block[0] = 'x';
        block = realloc(block, size * 2);
        assert_int_equal(block[0], 'x');
        assert_true(malloc_usable_size(block) >= size * 2);
        free(block);
    }
    struct hakmem_stats stats;
    assert_true(hakmem_get_stats(&stats, sizeof stats) >= offsetof(struct hakmem_stats, threads));
    assert_true(stats.malloc_calls > 40);
}

static void misuse_is_told(void **state)
{
    static const char expected[] = "hakmem: free(): double free of ";
    char said[512] = "";
    int end[2], status;
    (void)state;
    assert_int_equal(pipe(end), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(end[1], 2);
        void *volatile block = malloc(100);
        free(block);
        free(block);
        _exit(0);
    }
    close(end[1]);
    ssize_t length = read(end[0], said, sizeof said - 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_true(length > 0 && strncmp(said, expected, sizeof expected - 1) == 0);
    assert_ptr_equal(strchr(said, '\n'), said + length - 1);
    close(end[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_refused), cmocka_unit_test(blocks_of_all_tiers_come_and_go),
        cmocka_unit_test(misuse_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
