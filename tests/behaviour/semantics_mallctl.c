/* Owns the tests of jemalloc's mallctl and its forms by number: behaviour 57. Which names there
 * are, what their figures mean, and which errors come of wrong calls. */
#include "semantics_support.h"

#include "jemalloc.h"

/* Every name, with the bytes of its type; 0: it acts and has no value. */
static const struct name {
    const char *text;
    size_t bytes;
    bool writable;
} names[] = {
    {"version", sizeof(const char *), false},
    {"epoch", sizeof(uint64_t), true},
    {"background_thread", sizeof(bool), true},
    {"config.prof", sizeof(bool), false},
    {"config.stats", sizeof(bool), false},
    {"opt.background_thread", sizeof(bool), false},
    {"opt.dirty_decay_ms", sizeof(ssize_t), false},
    {"opt.muzzy_decay_ms", sizeof(ssize_t), false},
    {"opt.narenas", sizeof(unsigned), false},
    {"opt.prof", sizeof(bool), false},
    {"opt.tcache", sizeof(bool), false},
    {"thread.arena", sizeof(unsigned), true},
    {"thread.idle", 0, false},
    {"thread.tcache.enabled", sizeof(bool), false},
    {"thread.tcache.flush", 0, false},
    {"tcache.create", sizeof(unsigned), false},
    {"arena.0.decay", 0, false},
    {"arena.4096.purge", 0, false},
    {"arena.0.dirty_decay_ms", sizeof(ssize_t), true},
    {"arena.0.muzzy_decay_ms", sizeof(ssize_t), true},
    {"arenas.narenas", sizeof(unsigned), false},
    {"arenas.dirty_decay_ms", sizeof(ssize_t), true},
    {"arenas.muzzy_decay_ms", sizeof(ssize_t), true},
    {"arenas.quantum", sizeof(size_t), false},
    {"arenas.page", sizeof(size_t), false},
    {"arenas.nbins", sizeof(unsigned), false},
    {"prof.active", sizeof(bool), true},
    {"stats.allocated", sizeof(size_t), false},
    {"stats.active", sizeof(size_t), false},
    {"stats.metadata", sizeof(size_t), false},
    {"stats.resident", sizeof(size_t), false},
    {"stats.mapped", sizeof(size_t), false},
    {"stats.retained", sizeof(size_t), false},
};

static size_t read_size(const char *name)
{
    size_t value = SIZE_MAX, length = sizeof value;
    assert_int_equal(mallctl(name, &value, &length, NULL, 0), 0);
    assert_int_equal(length, sizeof value);
    return value;
}

static unsigned read_unsigned(const char *name)
{
    unsigned value = 77;
    size_t length = sizeof value;
    assert_int_equal(mallctl(name, &value, &length, NULL, 0), 0);
    return value;
}

static bool read_bool(const char *name)
{
    unsigned char value = 77;
    size_t length = sizeof value;
    assert_int_equal(mallctl(name, &value, &length, NULL, 0), 0);
    assert_true(value <= 1);
    return value;
}

/* Bytes are read of the length of the type, and of no other. */
static void lengths_are_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        unsigned char value[16];
        size_t bytes = names[i].bytes, length = bytes;
        if (!bytes)
            continue;
        memset(value, 0x5a, sizeof value);
        assert_int_equal(mallctl(names[i].text, value, &length, NULL, 0), 0);
        assert_int_equal(length, bytes);
        for (size_t k = bytes; k < sizeof value; k++)
            assert_int_equal(value[k], 0x5a);
        length = sizeof value;
        assert_int_equal(mallctl(names[i].text, value, &length, NULL, 0), EINVAL);
        assert_int_equal(length, bytes);
        length = 0;
        assert_int_equal(mallctl(names[i].text, value, &length, NULL, 0), EINVAL);
        assert_int_equal(mallctl(names[i].text, NULL, NULL, NULL, 0), 0);
    }
}

static void who_may_not_write_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        uint64_t value = 0;
        size_t length = sizeof value;
        int wrong = names[i].writable ? EINVAL : EPERM;
        assert_int_equal(mallctl(names[i].text, NULL, NULL, &value, 3), wrong);
        if (names[i].bytes)
            continue;
        assert_int_equal(mallctl(names[i].text, NULL, NULL, NULL, 0), 0);
        assert_int_equal(mallctl(names[i].text, &value, &length, NULL, 0), EPERM);
        assert_int_equal(mallctl(names[i].text, NULL, NULL, &value, sizeof value), EPERM);
    }
}

static void other_names_do_not_exist(void **state)
{
    (void)state;
    static const char *const others[] = {
        "",
        "vers",
        "versions",
        "version.",
        "arena.purge",
        "arena..x",
        "arena.x.purge",
        "arena.0.purg",
        "arena.0.",
        "arena.0.extent_hooks",
        "prof.dumps",
        "arenas.lookup",
        "stats.arenas.0.base",
        "thread.allocatedp",
        "stats",
        "arena.-1.purge",
        "tcache.creat",
        "opt.malloc_conf",
    };
    size_t mib[8], length = COUNT_OF(mib);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_int_equal(mallctl(others[i], NULL, NULL, NULL, 0), ENOENT);
        assert_int_equal(mallctlnametomib(others[i], mib, &length), ENOENT);
    }
    assert_int_equal(mallctl(NULL, NULL, NULL, NULL, 0), ENOENT);
}

/* By number the same comes out, and the number of an arena stands where it stands in the name. */
static void numbers_are_as_good_as_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        size_t mib[8], length = COUNT_OF(mib), parts = 1;
        for (const char *c = names[i].text; *c; c++)
            parts += *c == '.';
        assert_int_equal(mallctlnametomib(names[i].text, mib, &length), 0);
        assert_int_equal(length, parts);
        uint64_t by_name = 0, by_number = 0;
        size_t bytes = names[i].bytes, other = bytes;
        bool moves = strncmp(names[i].text, "stats.", 6) == 0;
        void *name_value = bytes ? &by_name : NULL, *number_value = bytes ? &by_number : NULL;
        assert_int_equal(mallctl(names[i].text, name_value, bytes ? &bytes : NULL, NULL, 0), 0);
        assert_int_equal(
            mallctlbymib(mib, length, number_value, bytes ? &other : NULL, NULL, 0), 0);
        assert_true(moves || by_name == by_number);
        assert_int_equal(mallctlbymib(mib, length - 1, NULL, NULL, NULL, 0), ENOENT);
        assert_int_equal(mallctlbymib(mib, length + 1, NULL, NULL, NULL, 0), ENOENT);
    }
    size_t mib[3], length = 3, wrong[1] = {COUNT_OF(names) + 1 /* prof.dump */};
    assert_int_equal(mallctlnametomib("arena.17.purge", mib, &length), 0);
    assert_int_equal(mib[1], 17);
    mib[1] = 0;
    assert_int_equal(mallctlbymib(mib, length, NULL, NULL, NULL, 0), 0);
    assert_int_equal(mallctlbymib(wrong, 1, NULL, NULL, NULL, 0), ENOENT);
    assert_int_equal(mallctlbymib(mib, 0, NULL, NULL, NULL, 0), ENOENT);
}

static void numbers_may_be_cut_off(void **state)
{
    (void)state;
    size_t mib[3] = {99, 99, 99}, length = 2;
    assert_int_equal(mallctlnametomib("arena.5.purge", mib, &length), 0);
    assert_int_equal(length, 2);
    assert_int_equal(mib[1], 5);
    assert_int_equal(mib[2], 99);
}

static void figures_fit_together(void **state)
{
    (void)state;
    size_t before = read_size("stats.allocated");
    char *block = malloc(10 * MIB);
    memset(block, 1, 10 * MIB);
    struct hakmem_stats stats;
    hakmem_get_stats(&stats, sizeof stats);
    size_t allocated = read_size("stats.allocated"), active = read_size("stats.active");
    assert_int_equal(allocated, stats.live_bytes);
    assert_true(allocated >= before + 10 * MIB && allocated < before + 11 * MIB);
    assert_true(active >= allocated);
    assert_true(read_size("stats.mapped") > active);
    assert_true(read_size("stats.resident") >= active + read_size("stats.metadata"));
    assert_true(read_size("stats.metadata") > 0);
    free(block);
    assert_true(read_size("stats.allocated") <= before + MIB);
    size_t retained = read_size("stats.retained");
    assert_int_equal(mallctl("arena.0.purge", NULL, NULL, NULL, 0), 0);
    assert_true(read_size("stats.resident") < active);
    assert_true(read_size("stats.mapped") + read_size("stats.retained") <= 2 * active + retained);
}

static void the_epoch_counts_what_is_written(void **state)
{
    (void)state;
    uint64_t first = 0, second = 0, any = 1000;
    size_t length = sizeof first;
    assert_int_equal(mallctl("epoch", &first, &length, &any, sizeof any), 0);
    assert_int_equal(mallctl("epoch", &second, &length, NULL, 0), 0);
    assert_int_equal(first, second);
    assert_int_equal(mallctl("epoch", NULL, NULL, &any, sizeof any), 0);
    assert_int_equal(mallctl("epoch", &second, &length, &any, sizeof any), 0);
    assert_int_equal(second, first + 2);
}

/* Reading comes first: who writes is told what was there before. */
static void the_delay_is_that_of_the_option(void **state)
{
    (void)state;
    static const char *const controls[] = {"arenas.dirty_decay_ms", "arena.0.dirty_decay_ms"};
    for (size_t i = 0; i < COUNT_OF(controls); i++) {
        long option = 0;
        ssize_t old = 0, new = 1234, back = 250;
        size_t length = sizeof old;
        assert_int_equal(hakmem_option_get("purge_delay_ms", &option), 0);
        assert_int_equal(mallctl(controls[i], &old, &length, &new, sizeof new), 0);
        assert_int_equal(old, option);
        assert_int_equal(hakmem_option_get("purge_delay_ms", &option), 0);
        assert_int_equal(option, 1234);
        new = -1;
        assert_int_equal(mallctl(controls[i], NULL, NULL, &new, sizeof new), 0);
        assert_int_equal(mallctl(controls[i], &old, &length, NULL, 0), 0);
        assert_int_equal(old, 3600000);
        new = -2;
        assert_int_equal(mallctl(controls[i], NULL, NULL, &new, sizeof new), EFAULT);
        assert_int_equal(mallctl(controls[i], &old, &length, &back, sizeof back), 0);
        assert_int_equal(old, 3600000);
    }
}

static void constants_are_what_they_are(void **state)
{
    (void)state;
    const char *version = NULL;
    size_t length = sizeof version;
    int major = 0, minor = 0;
    assert_int_equal(mallctl("version", &version, &length, NULL, 0), 0);
    assert_int_equal(sscanf(version, "%d.%d.", &major, &minor), 2);
    assert_true(major == 5 && minor == 3 && strstr(version, "hakmem-" HAKMEM_VERSION));
    assert_int_equal(read_unsigned("arenas.narenas"), 1);
    assert_int_equal(read_unsigned("opt.narenas"), 1);
    assert_int_equal(read_unsigned("thread.arena"), 0);
    assert_int_equal(read_size("arenas.quantum"), 16);
    assert_int_equal(read_size("arenas.page"), 4096);
    assert_true(read_bool("opt.tcache") && read_bool("thread.tcache.enabled"));
    assert_true(read_bool("config.stats") && read_bool("config.prof") && read_bool("opt.prof"));
    unsigned arena = 0;
    assert_int_equal(mallctl("thread.arena", NULL, NULL, &arena, sizeof arena), 0);
    arena = 1;
    assert_int_equal(mallctl("thread.arena", NULL, NULL, &arena, sizeof arena), EFAULT);
}

static int set_bool(const char *name, bool value)
{
    return mallctl(name, NULL, NULL, &value, sizeof value);
}

static int dump_to(const char *path)
{
    return mallctl("prof.dump", NULL, NULL, &path, sizeof path);
}

/* The bytes of live blocks that the first line of a profile tells of. */
static size_t live_bytes_of(const char *path)
{
    size_t blocks = 0, bytes = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "heap profile: %zu: %zu [", &blocks, &bytes), 2);
    fclose(file);
    return bytes;
}

/* Of big blocks each one is a sample. */
static void the_live_profile_is_switched_on_and_dumped(void **state)
{
    (void)state;
    long option = 1;
    char path[] = "/tmp/mallctl.XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0 && close(file) == 0);
    assert_false(read_bool("prof.active"));
    assert_int_equal(set_bool("prof.active", true), 0);
    assert_true(read_bool("prof.active"));
    assert_int_equal(hakmem_option_get("sample_kib", &option), 0);
    assert_int_equal(option, 512);
    char *block = malloc(64 * MIB);
    assert_non_null(block);
    assert_int_equal(dump_to(path), 0);
    size_t live = live_bytes_of(path);
    assert_true(live >= 64 * MIB && live < 80 * MIB);
    assert_int_equal(set_bool("prof.active", false), 0);
    assert_false(read_bool("prof.active"));
    free(block);
    char *another = malloc(64 * MIB);
    assert_non_null(another);
    assert_int_equal(dump_to(path), 0);
    assert_true(live_bytes_of(path) < 16 * MIB);
    free(another);
    assert_int_equal(unlink(path), 0);
}

/* What is dumped without a name has that of the process. */
static void dumps_have_names(void **state)
{
    (void)state;
    char name[64], *none = NULL;
    size_t length = sizeof none;
    assert_int_equal(dump_to("/no/such/folder/x.heap"), EFAULT);
    assert_int_equal(mallctl("prof.dump", &none, &length, NULL, 0), EPERM);
    assert_int_equal(mallctl("prof.dump", NULL, NULL, &none, 3), EINVAL);
    if (getenv("HAKMEM_PROFILE_FILE"))
        skip();
    assert_int_equal(mallctl("prof.dump", NULL, NULL, NULL, 0), 0);
    assert_int_equal(dump_to(NULL), 0);
    snprintf(name, sizeof name, "jeprof.%d.heap", (int)getpid());
    assert_int_equal(unlink(name), 0);
}

static void a_background_thread_is_noted(void **state)
{
    (void)state;
    bool old = true, new = true;
    size_t length = sizeof old;
    assert_int_equal(mallctl("background_thread", &old, &length, &new, sizeof new), 0);
    assert_false(old);
    assert_true(read_bool("background_thread"));
    new = false;
    assert_int_equal(mallctl("background_thread", &old, &length, &new, sizeof new), 0);
    assert_true(old);
    assert_false(read_bool("background_thread"));
}

static void a_flush_empties_the_threads_cache(void **state)
{
    (void)state;
    static const char *const flushes[] = {"thread.tcache.flush", "thread.idle"};
    for (size_t i = 0; i < COUNT_OF(flushes); i++) {
        void *blocks[10];
        for (size_t k = 0; k < COUNT_OF(blocks); k++)
            blocks[k] = malloc(777);
        for (size_t k = 0; k < COUNT_OF(blocks); k++)
            free(blocks[k]);
        struct hakmem_stats stats;
        hakmem_get_stats(&stats, sizeof stats);
        assert_true(stats.cached_bytes > stats.transfer_bytes);
        assert_int_equal(mallctl(flushes[i], NULL, NULL, NULL, 0), 0);
        hakmem_get_stats(&stats, sizeof stats);
        assert_int_equal(stats.cached_bytes, stats.transfer_bytes);
    }
    /* There is no other cache, but Redis 8 does not start without one for its scripts. */
    unsigned cache = read_unsigned("tcache.create");
    assert_int_equal(mallctl("tcache.flush", NULL, NULL, &cache, sizeof cache), 0);
    assert_int_equal(mallctl("tcache.destroy", NULL, NULL, &cache, sizeof cache), 0);
}

static void errno_stays(void **state)
{
    (void)state;
    errno = ERRNO_MARK;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        (void)mallctl(names[i].text, NULL, NULL, NULL, 0);
    (void)mallctl("none", NULL, NULL, NULL, 0);
    assert_int_equal(errno, ERRNO_MARK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_checked),
        cmocka_unit_test(who_may_not_write_is_told),
        cmocka_unit_test(other_names_do_not_exist),
        cmocka_unit_test(numbers_are_as_good_as_names),
        cmocka_unit_test(numbers_may_be_cut_off),
        cmocka_unit_test(figures_fit_together),
        cmocka_unit_test(the_epoch_counts_what_is_written),
        cmocka_unit_test(the_delay_is_that_of_the_option),
        cmocka_unit_test(constants_are_what_they_are),
        cmocka_unit_test(the_live_profile_is_switched_on_and_dumped),
        cmocka_unit_test(dumps_have_names),
        cmocka_unit_test(a_background_thread_is_noted),
        cmocka_unit_test(a_flush_empties_the_threads_cache),
        cmocka_unit_test(errno_stays),
    };
    return library_is_linked() || cmocka_run_group_tests(tests, NULL, NULL);
}
