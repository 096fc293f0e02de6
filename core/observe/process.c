/* See process.h. */
#include "observe/process.h"

#include <string.h>

#include "os/os.h"

/* The number behind the name in the lines of /proc/self/status, which are in KiB. */
static uint64_t bytes_at(const char *status, const char *name)
{
    const char *line = strstr(status, name);
    uint64_t kib = 0;
    if (!line)
        return 0;
    for (line += strlen(name); *line == ' ' || *line == '\t'; line++)
        continue;
    for (; *line >= '0' && *line <= '9'; line++)
        kib = kib * 10 + (uint64_t)(*line - '0');
    return kib * KIB;
}

void process_look(struct process *process)
{
    char status[2048];
    status[os_read_file("/proc/self/status", status, sizeof status - 1)] = '\0';
    process->id = os_process_id();
    process->parent = os_parent_id();
    process->rss_bytes = bytes_at(status, "\nVmRSS:");
    process->peak_rss_bytes = bytes_at(status, "\nVmHWM:");
    process->program_bytes = os_read_link("/proc/self/exe", process->program, PROGRAM_BYTES);
    process->command_bytes = os_read_file("/proc/self/cmdline", process->command, COMMAND_BYTES);
}
