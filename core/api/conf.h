/* The file HAKMEM_CONF, /etc/hakmem.conf as hakmem is built: options that the administrator of a
 * system sets for all programs, those with raised privileges among them.
 *
 *     # comment
 *     preset = hardened
 *
 * One setting a line; blanks around its parts do not count. The file has to be the superuser's, and
 * nobody else may write to it: else it is ignored, as is one that cannot be read. All that is wrong
 * with it is said in a line on stderr, but by programs with raised privileges, whose stderr may be
 * anything; these go on without a word.
 *
 * Read by the constructor alone, into memory of its own: nothing here allocates or takes a lock.
 */
#ifndef API_CONF_H
#define API_CONF_H

#include "base/macros.h"

/* Its name, for messages. */
extern const char conf_path[];

struct conf {
    char *text; /* NULL: there is no file, or it says nothing */
    size_t length, mapped;
    size_t next;   /* byte that is read next */
    unsigned line; /* number of the last setting's, from 1 */
};

/* Without a value: `value_length` is 0. */
struct conf_setting {
    const char *name, *value;
    size_t name_length, value_length;
};

void conf_open(struct conf *conf);
void conf_close(struct conf *conf);

/* The next setting; false: there was none, and the one after that is the first again. */
bool conf_next(struct conf *conf, struct conf_setting *setting);

#endif
