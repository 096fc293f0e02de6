/* observe/: what reports make of a process whose name and arguments are anything. */
#include "unit.h"

#include "base/policy.h"
#include "report/report.h"
#include "thread/registry.h"

static char buffer[128 * 1024];

static void set_command(struct process *process, const char *bytes, size_t length)
{
    memset(process, 0, sizeof *process);
    process->id = 42;
    process->command_bytes = length;
    memcpy(process->command, bytes, length);
}

static unsigned count_arguments(const struct process *process)
{
    const char *argument = NULL;
    size_t length;
    unsigned count = 0;
    while ((argument = process_next_argument(process, argument, &length)) != NULL) {
        CHECK(argument >= process->command);
        CHECK(argument + length <= process->command + process->command_bytes);
        CHECK(memchr(argument, '\0', length) == NULL);
        count++;
    }
    return count;
}

static void arguments_are_found_one_by_one(void **state)
{
    (void)state;
    static struct process process;
    set_command(&process, "", 0);
    assert_int_equal(count_arguments(&process), 0);
    set_command(&process, "ls\0", 3);
    assert_int_equal(count_arguments(&process), 1);
    set_command(&process, "ls\0-l", 5); /* cut off */
    assert_int_equal(count_arguments(&process), 2);
    set_command(&process, "sh\0\0\0x\0", 7); /* two are empty */
    assert_int_equal(count_arguments(&process), 4);
    char longest[COMMAND_BYTES];
    memset(longest, 'x', sizeof longest);
    set_command(&process, longest, sizeof longest);
    assert_int_equal(count_arguments(&process), 1);
}

static const char *json_of(const struct process *process)
{
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    report_json(&text, process);
    assert_true(text.length < sizeof buffer);
    return text_terminate(&text);
}

/* No control character, and each string ends before the next one begins. */
static bool strings_end(const char *json)
{
    bool inside = false;
    for (; *json; json++) {
        if ((unsigned char)*json < ' ')
            return false;
        if (inside && *json == '\\')
            json++;
        else if (*json == '"')
            inside = !inside;
    }
    return !inside;
}

/* JSON is UTF-8 whatever the arguments are, and shows them as they are where it can. */
static void any_argument_is_valid_json(void **state)
{
    (void)state;
    static struct process process;
    static const char odd[] = "a\"b\\\0\001\n\0\xc3\xa9\0\xff\xc3\0\xed\xa0\x80";
    set_command(&process, odd, sizeof odd);
    const char *json = json_of(&process);
    assert_true(strings_end(json));
    assert_non_null(strstr(
        json, "\"command\":[\"a\\\"b\\\\\",\"\\u0001\\u000a\",\"\xc3\xa9\",\"\\ufffd\\ufffd\","
              "\"\\ufffd\\ufffd\\ufffd\"]"));
    uint64_t random = 3;
    for (int round = 0; round < 300; round++) {
        char bytes[64];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)unit_random(&random);
        set_command(&process, bytes, sizeof bytes);
        memcpy(process.program, bytes, process.program_bytes = 20);
        CHECK(strings_end(json_of(&process)));
    }
}

/* The table keeps it on one line, so that no argument can look like a figure. */
static void the_table_keeps_a_command_on_its_line(void **state)
{
    (void)state;
    static struct process process;
    static const char odd[] = "prog\0two\nlines\0\033[31m";
    struct text text;
    set_command(&process, odd, sizeof odd);
    text_init(&text, buffer, sizeof buffer);
    report_table(&text, &process);
    const char *line = strstr(text_terminate(&text), "\ncommand:");
    assert_non_null(line);
    assert_memory_equal(
        line, "\ncommand: prog two?lines ?[31m\n", strlen("\ncommand: prog two?lines ?[31m\n"));
}

static void end_inside_a_lock(void *unused)
{
    (void)unused;
    policy.stats = 1;
    report_look();
    lock_acquire(&registry.lock);
    report_at_exit();
}

/* A signal handler may have called exit there. */
static void nothing_is_reported_from_inside_a_lock(void **state)
{
    (void)state;
    static char output[4096];
    int status = unit_run_child(end_inside_a_lock, NULL, output, sizeof output);
    assert_int_equal(status, 0);
    assert_string_equal(
        output, "hakmem: the program ended in the middle of a call: statistics are not written\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_are_found_one_by_one),
        cmocka_unit_test(any_argument_is_valid_json),
        cmocka_unit_test(the_table_keeps_a_command_on_its_line),
        cmocka_unit_test(nothing_is_reported_from_inside_a_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
