/* See log_modules.h.
 *
 * Where the loader has to be asked with a lock (loaded.h), whose holder may wait for one of the
 * calling thread, /proc/self/maps is read.
 */
#include "trace/log_modules.h"

#include <string.h>

#include "map/page_map.h"
#include "os/os.h"
#include "trace/claim.h"
#include "trace/loaded.h"
#include "trace/log_store.h"
#include "trace/modules.h"

_Static_assert((int)LOG_BUILD_ID_BYTES == (int)BUILD_ID_BYTES, "one is as long as the other");

/* ---- Looking up ------------------------------------------------------------------------------ */

static bool find_by_loader(uintptr_t address, struct module *module)
{
    struct dl_find_object found;
    if (_dl_find_object((void *)address, &found) != 0)
        return false;
    *module = (struct module){
        .start = (uintptr_t)found.dlfo_map_start,
        .end = (uintptr_t)found.dlfo_map_end,
        .bias = found.dlfo_link_map->l_addr,
        .path = found.dlfo_link_map->l_name,
        .is_there = true};
    module->path_bytes = strlen(module->path);
    module_read(module);
    return true;
}

/* Finds files only: memory may have a name in the map that is no file's. */
static bool find_loaded(uintptr_t address, char *map, size_t length, struct module *module)
{
    if (_dl_find_object)
        return find_by_loader(address, module);
    if (!map || !module_find(module, address, map, length) || module->path[0] != '/')
        return false;
    module->is_there = true;
    return module_read(module);
}

/* ---- Logging --------------------------------------------------------------------------------- */

static bool is_same(const struct log_module_record *record, const struct module *module)
{
    uint32_t bytes = module->build_id_bytes;
    if (record->start != module->start || record->end != module->end ||
        record->bias != module->bias)
        return false;
    if (bytes || record->build_id_bytes)
        return bytes == record->build_id_bytes &&
               memcmp(module->build_id, record->build_id, bytes) == 0;
    return record->path_bytes == module->path_bytes || module->path_bytes == 0;
}

/* The module that was logged last at these addresses decides. */
static bool is_known(const struct module *module)
{
    uint32_t rows = (uint32_t)ATOMIC_LOAD_RELAXED(&store_header()->rows[LOG_MODULES - 1]);
    for (uint32_t i = rows; i-- > 0;) {
        const struct log_module_record *record = store_record(LOG_MODULES, i);
        if (record && ATOMIC_LOAD_ACQUIRE(&record->state) == LOG_WHOLE &&
            record->start < module->end && module->start < record->end)
            return is_same(record, module);
    }
    return false;
}

/* The loader has no name for the program itself. A relative path is taken from the current folder,
 * which is mostly the one that it was opened from. */
static void fill_path(struct log_module_record *record, const struct module *module)
{
    size_t folder = 0;
    if (module->path_bytes == 0)
        folder = os_read_link("/proc/self/exe", record->path, LOG_PATH_BYTES - 1);
    else if (module->path[0] != '/' && memchr(module->path, '/', module->path_bytes))
        folder = os_read_link("/proc/self/cwd", record->path, LOG_PATH_BYTES - 1);
    if (folder && module->path_bytes)
        record->path[folder++] = '/';
    size_t room = LOG_PATH_BYTES - 1 - size_min(folder, LOG_PATH_BYTES - 1);
    memcpy(record->path + folder, module->path, size_min(module->path_bytes, room));
    record->path_bytes = (uint32_t)(folder + module->path_bytes);
}

static void log_module(const struct module *module, uint64_t time_ns)
{
    uint32_t number;
    struct log_module_record *record = store_append(LOG_MODULES, &number);
    if (!record) {
        ATOMIC_ADD_RELAXED(&store_header()->lost_modules, 1);
        return;
    }
    record->time_ns = time_ns;
    record->start = module->start;
    record->end = module->end;
    record->bias = module->bias;
    record->build_id_bytes = module->build_id_bytes;
    memcpy(record->build_id, module->build_id, module->build_id_bytes);
    fill_path(record, module);
    ATOMIC_STORE_RELEASE(&record->state, LOG_WHOLE);
}

/* A plugin that is loaded in the place of another one often has its link map there, too: only the
 * path differs. Modules loaded with the program stay, and have their link maps in the loader's own
 * memory, since there was no malloc yet. */
uint64_t modules_of_stack(const uintptr_t *frames, unsigned count)
{
    uint64_t number = 0;
    struct dl_find_object found = {0};
    uintptr_t start = 0, end = 0;
    if (!_dl_find_object || !log_is_on())
        return 0;
    for (unsigned i = 0; i < count; i++) {
        uintptr_t address = frames[i] - 1;
        if (address - start < end - start || _dl_find_object((void *)address, &found) != 0)
            continue;
        start = (uintptr_t)found.dlfo_map_start;
        end = (uintptr_t)found.dlfo_map_end;
        if (LIKELY(!page_map_lookup(found.dlfo_link_map)))
            continue;
        for (const char *c = found.dlfo_link_map->l_name; *c; c++)
            number = (number ^ (uint8_t)*c) * 0x100000001b3u;
    }
    return number;
}

enum { MAP_BYTES = 1 << 20 };

void modules_note(const uintptr_t *frames, unsigned count, uint64_t time_ns)
{
    static uint64_t claim;
    struct module module = {0};
    char *map = NULL;
    size_t length = 0;
    if (!claim_wait(&claim))
        return;
    if (!_dl_find_object && (map = os_map(MAP_BYTES, os_page_size(), NULL)))
        length = os_read_file("/proc/self/maps", map, MAP_BYTES);
    for (unsigned i = 0; i < count; i++) {
        /* A return address behind a call at a module's very end would be the next module's. Most
         * are in the module of the one before. */
        uintptr_t address = frames[i] - 1;
        if (address >= module.start && address < module.end)
            continue;
        if (!find_loaded(address, map, length, &module))
            module = (struct module){0};
        else if (!is_known(&module))
            log_module(&module, time_ns);
    }
    if (map)
        os_unmap(map, MAP_BYTES);
    claim_release(&claim);
}
