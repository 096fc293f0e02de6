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

/* The file that statistics are written to at exit; NULL: none. HAKMEM_STATS_FILE, in which %p is
 * the process id and %% a percent sign. */
const char *environment_stats_file(void);

/* The file that the event log is written to; NULL: none. HAKMEM_RECORD_FILE, in which %p is the
 * process id, %e the program's name and %% a percent sign. */
const char *environment_record_file(void);

/* The file for the live profile; NULL: none. HAKMEM_PROFILE_FILE, as for statistics. */
const char *environment_profile_file(void);

/* The file for the report of a crash; NULL: none. HAKMEM_CRASH_FILE, as for statistics. */
const char *environment_crash_file(void);

/* Whether the options ask for statistics at exit, or for a report of a crash, to stderr or a file.
 */
bool environment_wants_stats(void);
bool environment_wants_crash_report(void);

#endif
