/* The path of the file, from the pattern that the user gave. */
#ifndef TRACE_LOG_PATH_H
#define TRACE_LOG_PATH_H

#include "base/text.h"

enum { PATH_BYTES = 4096 };

/* Makes a pattern of a path: %e becomes the program's name, and a relative path one of the folder
 * that the program starts in. The number of the process stays open, as children have others. Both
 * texts have PATH_BYTES, and this returns false when it does not fit. */
bool path_keep(char *pattern, const char *path);

/* The path of this process. There may be such a file already, of the same process as another
 * program, or of others where the pattern leaves no place for the number: `again` tells them apart,
 * from 1 on, and from 2 on the number is part of the name in any case. False when it does not
 * fit. */
bool path_resolve(const char *pattern, char *path, unsigned again);

#endif
