/* See process.h. */
#include "report/process.h"

#include <string.h>

#include "os/os.h"

/* The number behind the name in /proc/self/status; 0: there is none. */
static uint64_t number_at(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    uint64_t number = 0;
    if (!line)
        return 0;
    for (line += strlen(name); *line == ' ' || *line == '\t'; line++)
        continue;
    for (; *line >= '0' && *line <= '9'; line++)
        number = number * 10 + (uint64_t)(*line - '0');
    return number;
}

int process_status(uint64_t *rss_bytes, uint64_t *peak_bytes)
{
    char status[2048]; /* the lines are among the first */
    status[os_read_file("/proc/self/status", status, sizeof status - 1)] = '\0';
    *rss_bytes = number_at(status, "\nVmRSS:") * KIB;
    *peak_bytes = number_at(status, "\nVmHWM:") * KIB;
    return (int)number_at(status, "\nPPid:");
}

void process_look(struct process *process)
{
    process->id = os_process_id();
    process->parent = process_status(&process->rss_bytes, &process->peak_rss_bytes);
    process->program_bytes = os_read_link("/proc/self/exe", process->program, PROGRAM_BYTES);
    process->command_bytes = os_read_file("/proc/self/cmdline", process->command, COMMAND_BYTES);
}

const char *process_next_argument(
    const struct process *process, const char *argument, size_t *length)
{
    const char *end = process->command + process->command_bytes;
    const char *next = argument ? argument + *length + 1 : process->command;
    if (next >= end)
        return NULL;
    *length = strnlen(next, (size_t)(end - next));
    return next;
}
