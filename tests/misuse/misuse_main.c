/* Owns main() of the misuse program and its words to the runner.
 *
 * usage: misuse CASE SIZE
 *        misuse --list
 */
#include "misuse.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Nothing here may allocate between the announcement and the mistake. */
static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0) {
        _exit(3);
    }
}

void announce(const void *bad, const void *base)
{
    char text[128];
    snprintf(
        text, sizeof(text), "bad 0x%zx base 0x%zx usable %zu\n", (size_t)bad, (size_t)base,
        base == NULL ? (size_t)0 : malloc_usable_size((void *)base));
    say(text);
}

void survived(void)
{
    say("survived\n");
}

_Noreturn void not_applicable(void)
{
    say("not applicable\n");
    _exit(77);
}

_Noreturn void broken(const char *what)
{
    say("broken: ");
    say(what);
    say("\n");
    _exit(3);
}

static const struct misuse_case *const parts[] = {
    invalid_cases, double_cases, thread_cases, limit_cases, valid_cases};

int main(int count, char **arguments)
{
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    if (strcmp(hakmem_version(), HAKMEM_VERSION) != 0) {
        broken("another version of the library");
    }
    bool list = count == 2 && strcmp(arguments[1], "--list") == 0;
    if (count != 3 && !list) {
        fputs("usage: misuse CASE SIZE | --list\n", stderr);
        return 2;
    }
    for (size_t part = 0; part < COUNT_OF(parts); part++) {
        for (const struct misuse_case *each = parts[part]; each->name != NULL; each++) {
            if (list) {
                puts(each->name);
            } else if (strcmp(each->name, arguments[1]) == 0) {
                each->run(strtoul(arguments[2], NULL, 10));
                return 0;
            }
        }
    }
    return list ? 0 : 2;
}
