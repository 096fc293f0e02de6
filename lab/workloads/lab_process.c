/* A workload that starts itself: what a fresh process costs can only be seen in fresh ones.
 *
 * The child has the flags of its parent and --child besides. It sends what it recorded through its
 * standard output, which is a pipe to the parent. */
#include "lab_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A table of flags is shorter than this, and each takes a name and a value. */
#define FLAGS_MOST 16

/* The command line of a child; the strings of the numbers are in `texts`. */
struct child_command {
    char *arguments[2 * FLAGS_MOST + 2];
    char names[FLAGS_MOST][32];
    char texts[FLAGS_MOST][24];
    size_t flags;
    size_t count; /* of the arguments */
};

static void add_flag(struct child_command *command, const struct lab_flag *flag, uint64_t value)
{
    if (command->flags == FLAGS_MOST) {
        lab_fail("a child takes no more than %d flags", FLAGS_MOST);
    }
    size_t index = command->flags++;
    snprintf(command->names[index], sizeof command->names[index], "--%s", flag->name);
    command->arguments[command->count++] = command->names[index];
    const char *word = flag->kind == LAB_CHOICE ? flag->choices[value] : NULL;
    char *text = command->texts[index];
    if (word) {
        snprintf(text, sizeof command->texts[index], "%s", word);
    } else {
        snprintf(text, sizeof command->texts[index], "%llu", (unsigned long long)value);
    }
    command->arguments[command->count++] = text;
}

static void add_flags(
    struct child_command *command, const struct lab_flag *flags, size_t flag_count, uint64_t child)
{
    for (size_t i = 0; i < flag_count; i++) {
        bool is_child = strcmp(flags[i].name, LAB_CHILD_FLAG) == 0;
        add_flag(command, &flags[i], is_child ? child : *flags[i].variable);
    }
}

static void require_success(int error, const char *what)
{
    if (error) {
        lab_fail("cannot %s: %s", what, strerror(error));
    }
}

/* Starts the program; its standard output is the pipe whose other end is returned. */
static int start(char *const *arguments, pid_t *child)
{
    static char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    if (length <= 0 || length == sizeof program) {
        lab_fail("cannot read /proc/self/exe, so the program cannot start itself");
    }
    program[length] = '\0';
    int ends[2];
    require_success(pipe2(ends, O_CLOEXEC) ? errno : 0, "make a pipe");
    posix_spawn_file_actions_t actions;
    require_success(posix_spawn_file_actions_init(&actions), "prepare a process");
    require_success(
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO), "prepare a process");
    require_success(
        posix_spawn(child, program, &actions, NULL, arguments, environ), "start a process");
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    return ends[0];
}

void lab_run_child(uint64_t number)
{
    struct child_command command = {.count = 1, .arguments = {(char *)lab_program.workload}};
    add_flags(&command, lab_program.flags, lab_program.flag_count, number);
    add_flags(&command, lab_common_flags, lab_common_flag_count, number);
    pid_t child;
    int file = start(command.arguments, &child);
    lab_outcome_receive(&lab_outcome, file);
    close(file);
    int status;
    while (waitpid(child, &status, 0) < 0) {
        require_success(errno == EINTR ? 0 : errno, "wait for a process");
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        lab_fail("a process ended with wait status %d", status);
    }
}

int lab_report_to_parent(void)
{
    lab_outcome_send(&lab_outcome, STDOUT_FILENO);
    return 0;
}
