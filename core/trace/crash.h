/* The report of a program that dies: of a signal, if the option `crash` or a file for the report is
 * set, or of a misuse of the heap.
 *
 * A handler for SIGSEGV, SIGBUS and SIGABRT, set by the library's constructor, so that handlers of
 * the program take its place. It allocates nothing, takes no lock and believes no memory. It writes
 * the report piece by piece, and then calls the earlier handler, or lets the program end and leave
 * its core file.
 *
 * One report a process. Another thread that crashes meanwhile waits a little for its end. A crash
 * within the report ends it.
 */
#ifndef TRACE_CRASH_H
#define TRACE_CRASH_H

struct fatal_line;

/* To be called when the options are known. */
void crash_start(void);

/* Writes the report of a misuse, after its line. */
void crash_tell_misuse(const struct fatal_line *line);

#endif
