/* The path of the file, from the pattern that the user gave. */
#ifndef TRACE_LOG_PATH_H
#define TRACE_LOG_PATH_H

#include "base/text.h"

enum { PATH_BYTES = 4096 };

/* Makes a pattern of a path: replaces %e by the program's name, and makes a relative path absolute.
 * %p stays, since children have other process ids. Both texts have PATH_BYTES; false: the pattern
 * does not fit. */
bool path_keep(char *pattern, const char *path);

/* Makes the path for this process. The file may exist already: this process made it as another
 * program, or, if the pattern has no %p, another process did. `again` counts from 1; from 2 on the
 * name has the process id, and tells the files apart. False: the path does not fit. */
bool path_resolve(const char *pattern, char *path, unsigned again);

#endif
