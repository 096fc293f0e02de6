/* What a program leaves behind that dies: of a signal, if the option `crash` or a file for the
 * report is asked for, or of a misuse of the heap.
 *
 * A handler for SIGSEGV, SIGBUS and SIGABRT, set by the library's constructor, so that handlers of
 * the program take its place. It allocates nothing, takes no lock and believes no memory. What
 * there is to say is written piece by piece; then what would have happened without it happens: the
 * handler of before is called, or the program ends and leaves its core file.
 *
 * One report a process. A thread that crashes meanwhile waits a little for its end; a mistake of
 * the report itself ends it.
 */
#ifndef TRACE_CRASH_H
#define TRACE_CRASH_H

struct fatal_line;

/* When the options are known. */
void crash_start(void);

/* What there is to tell of a misuse, after its line. */
void crash_tell_misuse(const struct fatal_line *line);

#endif
