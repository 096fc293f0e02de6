/* The live profile as a file: the sums of each stack so far, in the text form that pprof and its
 * relatives read ("heap profile"), with the mappings of the process.
 *
 * It takes no lock and allocates nothing: a signal handler may write one, too.
 */
#ifndef TRACE_PROFILE_H
#define TRACE_PROFILE_H

/* Writes it to the path, as report_open resolves it. Returns 0; ENODATA: nothing was sampled so
 * far; EIO: it cannot be written, and a line has said so. */
int profile_write(const char *path);

#endif
