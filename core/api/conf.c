/* See conf.h. */
#include "api/conf.h"

#include <string.h>

#include "api/options.h"
#include "os/os.h"

const char conf_path[] = HAKMEM_CONF;

static const size_t longest = 64 * KIB;

/* ---- The file -------------------------------------------------------------------------------- */

static void complain_of_file(const char *reason)
{
    options_complain(OPTION_FILE, conf_path, " is ignored: ", reason);
}

static void read_all(struct conf *conf, int fd, size_t size)
{
    if (size == 0)
        return;
    if (size > longest) {
        complain_of_file("it is longer than 64 KiB");
        return;
    }
    conf->mapped = round_up(size, os_page_size());
    conf->text = os_map(conf->mapped, os_page_size(), NULL);
    if (conf->text)
        conf->length = os_read(fd, conf->text, size);
    else
        complain_of_file("there is no memory for it");
}

void conf_open(struct conf *conf)
{
    size_t size = 0;
    int fd = os_open_trusted(conf_path, &size);
    *conf = (struct conf){.text = NULL};
    if (fd == OS_UNTRUSTED)
        complain_of_file("it has to be a file of root's that nobody else may write to");
    if (fd < 0)
        return;
    read_all(conf, fd, size);
    os_close(fd);
}

void conf_close(struct conf *conf)
{
    if (conf->text)
        os_discard(conf->text, conf->mapped);
}

/* ---- Its lines ------------------------------------------------------------------------------- */

struct piece {
    const char *start;
    size_t length;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct piece trimmed(const char *start, size_t length)
{
    while (length && is_blank(start[length - 1]))
        length--;
    for (; length && is_blank(*start); length--)
        start++;
    return (struct piece){start, length};
}

/* Bytes before the first `end`, or all. */
static size_t bytes_before(char end, const char *start, size_t length)
{
    const char *found = memchr(start, end, length);
    return found ? (size_t)(found - start) : length;
}

/* The next line, without its comment; false: there is none. */
static bool next_line(struct conf *conf, struct piece *line)
{
    if (conf->next >= conf->length)
        return false;
    const char *start = conf->text + conf->next;
    size_t length = bytes_before('\n', start, conf->length - conf->next);
    conf->next += length + 1;
    conf->line++;
    *line = trimmed(start, bytes_before('#', start, length));
    return true;
}

bool conf_next(struct conf *conf, struct conf_setting *setting)
{
    struct piece line = {NULL, 0};
    while (line.length == 0)
        if (!next_line(conf, &line)) {
            conf->next = conf->line = 0;
            return false;
        }
    size_t name_length = bytes_before('=', line.start, line.length);
    size_t value_start = size_min(name_length + 1, line.length);
    struct piece name = trimmed(line.start, name_length);
    struct piece value = trimmed(line.start + value_start, line.length - value_start);
    *setting = (struct conf_setting){name.start, value.start, name.length, value.length};
    return true;
}
