/* Options set from outside: by the environment, and, with lower precedence, by a file of the
 * administrator's (conf.h).
 *
 * HAKMEM_<NAME>=value sets one option; HAKMEM_OPTIONS=name=value,name=value several. An empty
 * variable counts as unset. The library's constructor reads both once. In programs with more rights
 * than their caller (AT_SECURE), the environment is ignored, and the file alone decides.
 */
#ifndef API_ENVIRONMENT_H
#define API_ENVIRONMENT_H

#include "base/macros.h"

/* Reads the file and the environment. */
void environment_read(void);

/* Whether malloc is this library's; NULL if there are no exported names. */
bool override_serves(void) __attribute__((weak, visibility("hidden")));

/* The path in HAKMEM_STATS_FILE, HAKMEM_RECORD_FILE, HAKMEM_CRASH_FILE or HAKMEM_PROFILE_FILE,
 * where statistics at exit, the event log, the report of a crash or the live profile goes; NULL:
 * none. %p stands for the process id, %% for a percent sign, and %e, in the event log's, for the
 * program's name. */
enum environment_file { STATS_FILE, RECORD_FILE, CRASH_FILE, PROFILE_FILE, FILE_COUNT };
const char *environment_file(enum environment_file file);

/* Whether the options ask for statistics at exit, or for a report of a crash, to stderr or a file.
 */
bool environment_wants_stats(void);
bool environment_wants_crash_report(void);

#endif
