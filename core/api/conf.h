/* The file HAKMEM_CONF, /etc/hakmem.conf as hakmem is built: options that the administrator of a
 * system sets for all programs, including those with raised privileges.
 *
 *     # comment
 *     preset = hardened
 *
 * One setting a line; blanks around its parts do not count. The file has to be the superuser's, and
 * no other user may write to it: else it is ignored, as is one that cannot be read. Each mistake in
 * it costs a line on stderr, but not in programs with raised privileges, whose stderr may be
 * anything.
 *
 * Read by the constructor alone, into memory of its own: nothing here allocates or takes a lock.
 */
#ifndef API_CONF_H
#define API_CONF_H

#include "base/macros.h"

/* Its name, for messages. */
extern const char conf_path[];

struct conf {
    char *text; /* NULL: there is no file, or it is empty */
    size_t length, mapped;
    size_t next;   /* the next byte to read */
    unsigned line; /* number of the last setting's, from 1 */
};

/* Without a value: `value_length` is 0. */
struct conf_setting {
    const char *name, *value;
    size_t name_length, value_length;
};

void conf_open(struct conf *conf);
void conf_close(struct conf *conf);

/* The next setting. False: there is none, and the next call returns the first again. */
bool conf_next(struct conf *conf, struct conf_setting *setting);

#endif
