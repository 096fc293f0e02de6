/* The live profile as a file: what the samples so far say of each stack, in the text form that
 * pprof and its relatives read ("heap profile"), with the mappings of the process.
 *
 * It takes no lock and allocates nothing: also a signal handler may write one.
 */
#ifndef TRACE_PROFILE_H
#define TRACE_PROFILE_H

/* Writes it to what the path stands for (report_open). 0, or: ENODATA, nothing was sampled so far;
 * EIO, it cannot be written, and a line has said so. */
int profile_write(const char *path);

#endif
