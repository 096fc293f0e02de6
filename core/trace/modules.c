/* See modules.h. */
#include "trace/modules.h"

#include <elf.h>
#include <string.h>

#include "os/os.h"

enum { MODULES_MAX = 64 };

_Static_assert(MODULES_MAX * sizeof(struct module) <= 32 * KIB, "some room is for the text");

/* The thread that opened it only. */
static struct {
    struct module *found; /* MODULES_MAX of them, and the text behind; NULL: no memory for it */
    unsigned count;
    char *map; /* text of the system's map */
    size_t map_bytes, map_capacity;
} modules;

void modules_open(void)
{
    /* Tries less if there is no memory for more. Untouched pages cost nothing. */
    for (size_t bytes = 16 * MIB; bytes >= 64 * KIB && !modules.found; bytes /= 4) {
        modules.found = os_map(bytes, 1, NULL);
        modules.map_capacity = bytes - MODULES_MAX * sizeof *modules.found;
    }
    if (!modules.found)
        return;
    modules.map = (char *)(modules.found + MODULES_MAX);
    modules.map_bytes = os_read_file("/proc/self/maps", modules.map, modules.map_capacity);
}

void modules_close(void)
{
    if (modules.found)
        os_unmap(modules.found, MODULES_MAX * sizeof *modules.found + modules.map_capacity);
    modules.found = NULL;
    modules.count = 0;
}

/* May read memory that a sanitizer watches. */
__attribute__((no_sanitize("address", "thread"))) bool modules_read(
    uintptr_t address, void *buffer, size_t size)
{
    const volatile char *from = (const volatile char *)address;
    char *to = buffer;
    if (!os_is_readable((const void *)address, size))
        return false;
    for (size_t i = 0; i < size; i++)
        to[i] = from[i];
    return true;
}

/* ---- The map --------------------------------------------------------------------------------- */

static uintptr_t read_hex(const char **text, const char *end)
{
    uintptr_t value = 0;
    for (; *text < end; ++*text) {
        char c = **text;
        if (c >= '0' && c <= '9')
            value = value << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uintptr_t)(c - 'a' + 10);
        else
            break;
    }
    return value;
}

/* start-end access offset device number path. Memory of no file has an empty path. */
static void read_map_line(const char *text, const char *end, struct module *line)
{
    line->start = read_hex(&text, end);
    text++;
    line->end = read_hex(&text, end);
    for (int field = 0; field < 4; field++) {
        while (text < end && *text == ' ')
            text++;
        while (text < end && *text != ' ')
            text++;
    }
    while (text < end && *text == ' ')
        text++;
    line->path = text;
    line->path_bytes = text < end ? (size_t)(end - text) : 0;
}

static bool is_in_module(const struct module *module, uintptr_t address)
{
    return module->path_bytes && address >= module->start && address < module->end;
}

/* Lines of one file that stand together are one module. */
bool module_find(struct module *module, uintptr_t address, const char *map, size_t map_bytes)
{
    const char *text = map, *limit = map + map_bytes, *end;
    *module = (struct module){0};
    for (; text < limit && (end = memchr(text, '\n', (size_t)(limit - text))); text = end + 1) {
        struct module line = {0};
        read_map_line(text, end, &line);
        bool same = line.path_bytes && line.path_bytes == module->path_bytes &&
                    memcmp(line.path, module->path, line.path_bytes) == 0;
        if (!same && is_in_module(module, address))
            return true;
        if (same)
            module->end = line.end;
        else
            *module = line;
    }
    return is_in_module(module, address);
}

/* ---- The file in memory ---------------------------------------------------------------------- */

static bool read_of(const struct module *module, uintptr_t address, void *buffer, size_t size)
{
    if (!module->is_there)
        return modules_read(address, buffer, size);
    bool inside =
        address >= module->start && address < module->end && module->end - address >= size;
    if (inside)
        memcpy(buffer, (const void *)address, size);
    return inside;
}

static void read_notes(struct module *module, uintptr_t address, size_t size)
{
    while (size > sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        char name[4];
        uintptr_t at = address + sizeof note;
        if (!read_of(module, address, &note, sizeof note) ||
            !read_of(module, at, name, sizeof name))
            return;
        size_t whole = sizeof note + round_up(note.n_namesz, 4) + round_up(note.n_descsz, 4);
        if (note.n_type == NT_GNU_BUILD_ID && memcmp(name, "GNU", sizeof name) == 0 &&
            note.n_namesz == sizeof name && note.n_descsz <= BUILD_ID_BYTES &&
            read_of(module, at + sizeof name, module->build_id, note.n_descsz))
            module->build_id_bytes = note.n_descsz;
        if (whole > size)
            return;
        address += whole;
        size -= whole;
    }
}

bool module_read(struct module *module)
{
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    if (!read_of(module, module->start, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof segment)
        return false;
    bool has_bias = false;
    uintptr_t at = module->start + header.e_phoff;
    for (unsigned i = 0; i < header.e_phnum; i++, at += sizeof segment) {
        if (!read_of(module, at, &segment, sizeof segment))
            break;
        uintptr_t start = module->bias + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && !has_bias) {
            /* The first one has the header, and is the lowest. Notes and tables may be listed
             * before it, so a second round looks at them. */
            module->bias = module->start - (segment.p_vaddr - segment.p_offset);
            has_bias = true;
            at = module->start + header.e_phoff - sizeof segment;
            i = UINT32_MAX;
        } else if (has_bias && segment.p_type == PT_NOTE && !module->build_id_bytes) {
            read_notes(module, start, segment.p_memsz);
        } else if (has_bias && segment.p_type == PT_GNU_EH_FRAME) {
            module->unwind_table = start;
        }
    }
    return has_bias;
}

const struct module *modules_find(uintptr_t address)
{
    for (unsigned i = 0; i < modules.count; i++)
        if (is_in_module(&modules.found[i], address))
            return &modules.found[i];
    if (!modules.found || modules.count == MODULES_MAX)
        return NULL;
    struct module *module = &modules.found[modules.count];
    if (!module_find(module, address, modules.map, modules.map_bytes))
        return NULL;
    modules.count++;
    module->bias = module->start;
    module_read(module);
    return module;
}

bool modules_code(uintptr_t address, struct code *code)
{
    const struct module *module = modules_find(address);
    if (module)
        *code = (struct code){{module->start, module->end}, module->unwind_table};
    return module != NULL;
}
