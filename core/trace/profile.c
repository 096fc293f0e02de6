/* See profile.h. */
#include "trace/profile.h"

#include <errno.h>

#include "os/os.h"
#include "report/report.h"
#include "trace/site.h"

/* ---- The profile ----------------------------------------------------------------------------- */

struct sums {
    uint64_t live_blocks, live_bytes, born_blocks, born_bytes;
};

static uint64_t blocks_of(uint64_t parts)
{
    return (parts + SITE_PARTS / 2) / SITE_PARTS;
}

/* Deaths are read first: other threads go on. */
static struct sums sums_of(const struct site *site)
{
    uint64_t dead_parts = ATOMIC_LOAD_ACQUIRE(&site->dead_parts);
    uint64_t dead_bytes = ATOMIC_LOAD_ACQUIRE(&site->dead_bytes);
    uint64_t born_parts = ATOMIC_LOAD_RELAXED(&site->born_parts);
    uint64_t born_bytes = ATOMIC_LOAD_RELAXED(&site->born_bytes);
    return (struct sums){
        .live_blocks = blocks_of(born_parts - (uint64_t)size_min(dead_parts, born_parts)),
        .live_bytes = born_bytes - (uint64_t)size_min(dead_bytes, born_bytes),
        .born_blocks = blocks_of(born_parts),
        .born_bytes = born_bytes};
}

static void print_sums(struct text *text, const struct sums *sums)
{
    text_unsigned(text, sums->live_blocks);
    text_string(text, ": ");
    text_unsigned(text, sums->live_bytes);
    text_string(text, " [");
    text_unsigned(text, sums->born_blocks);
    text_string(text, ": ");
    text_unsigned(text, sums->born_bytes);
    text_string(text, "] @");
}

static bool write_text(int fd, const struct text *text)
{
    return os_write_quietly(fd, text->buffer, text_stored(text));
}

/* The values are estimates of all blocks: "heapprofile" has no rate to scale by. */
static bool write_head(int fd)
{
    char buffer[256];
    struct text text;
    struct sums all = {0};
    for (const struct site *site = site_newest(); site; site = site->next) {
        struct sums one = sums_of(site);
        all.live_blocks += one.live_blocks;
        all.live_bytes += one.live_bytes;
        all.born_blocks += one.born_blocks;
        all.born_bytes += one.born_bytes;
    }
    text_init(&text, buffer, sizeof buffer);
    text_string(&text, "heap profile: ");
    print_sums(&text, &all);
    text_string(&text, " heapprofile\n");
    return write_text(fd, &text);
}

static bool write_site(int fd, const struct site *site)
{
    char buffer[1024];
    struct text text;
    struct sums sums = sums_of(site);
    text_init(&text, buffer, sizeof buffer);
    text_string(&text, "  ");
    print_sums(&text, &sums);
    for (unsigned i = 0; i < site->frames; i++) {
        text_char(&text, ' ');
        text_hex(&text, site->frame[i]);
    }
    text_char(&text, '\n');
    return write_text(fd, &text);
}

/* Copies /proc/self/maps. */
static bool write_mappings(int fd)
{
    static const char title[] = "\nMAPPED_LIBRARIES:\n";
    bool written = os_write_quietly(fd, title, sizeof title - 1);
    const size_t capacity = 4 * MIB;
    char *map = os_map(capacity, 1, NULL);
    if (!map)
        return false;
    size_t length = os_read_file("/proc/self/maps", map, capacity);
    written = os_write_quietly(fd, map, length) && written;
    os_unmap(map, capacity);
    return written;
}

int profile_write(const char *path)
{
    static const char unwritten[] = "hakmem: profile: it could not be written to its end\n";
    bool is_standing, written = true;
    if (!site_newest())
        return ENODATA;
    int fd = report_open("profile_file", path, 0600, &is_standing);
    if (fd < 0)
        return EIO;
    written = write_head(fd);
    for (const struct site *site = site_newest(); site && written; site = site->next)
        if (ATOMIC_LOAD_RELAXED(&site->born_samples))
            written = write_site(fd, site);
    written = written && write_mappings(fd);
    if (!is_standing)
        os_close(fd);
    if (!written)
        report_say(unwritten, sizeof unwritten - 1);
    return written ? 0 : EIO;
}
