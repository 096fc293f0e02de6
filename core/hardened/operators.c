/* See operators.h. */
#include "hardened/operators.h"

#include <link.h>
#include <string.h>

#include "base/atomic.h"
#include "base/macros.h"

/* What a loaded file says of its names, in memory. */
struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *hash;
    const ElfW(Rela) * moved[2]; /* its relocations */
    size_t bytes[2];
};

/* An address out of the dynamic section: glibc has added where the file lies, musl has not. */
static const void *address_in(const struct dl_phdr_info *file, ElfW(Addr) address)
{
    return (const void *)(address < file->dlpi_addr ? address + file->dlpi_addr : address);
}

/* False: the file has no such table as linkers make today. */
static bool read_tables(const struct dl_phdr_info *file, struct tables *tables)
{
    const ElfW(Dyn) *entry = NULL;
    for (unsigned i = 0; i < file->dlpi_phnum; i++)
        if (file->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(file->dlpi_addr + file->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void *address = address_in(file, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB)
            tables->symbols = address;
        else if (entry->d_tag == DT_STRTAB)
            tables->strings = address;
        else if (entry->d_tag == DT_GNU_HASH)
            tables->hash = address;
        else if (entry->d_tag == DT_RELA || entry->d_tag == DT_JMPREL)
            tables->moved[entry->d_tag == DT_JMPREL] = address;
        else if (entry->d_tag == DT_RELASZ || entry->d_tag == DT_PLTRELSZ)
            tables->bytes[entry->d_tag == DT_PLTRELSZ] = entry->d_un.d_val;
    }
    return tables->symbols && tables->strings && tables->hash;
}

static const char *name_of(const struct tables *tables, size_t symbol)
{
    return tables->strings + tables->symbols[symbol].st_name;
}

/* The number of the symbol of that name that the file defines; 0: it defines none. The table has
 * | buckets | first symbol | words of a filter | shift | filter | bucket ... | hash ... |, and only
 * defined symbols. */
static size_t find_defined(const struct tables *tables, const char *name)
{
    enum { HEAD = 4, HASH_START = 5381, HASH_FACTOR = 33 };
    const uint32_t *table = tables->hash, buckets = table[0], first = table[1];
    const uint32_t *bucket = table + HEAD + table[2] * sizeof(ElfW(Addr)) / sizeof *table;
    const uint32_t *hashes = bucket + buckets;
    uint32_t hash = HASH_START;
    for (const char *at = name; *at; at++)
        hash = hash * HASH_FACTOR + (unsigned char)*at;
    size_t symbol = buckets ? bucket[hash % buckets] : 0;
    for (; symbol >= first && symbol; symbol++) {
        uint32_t here = hashes[symbol - first];
        if ((here | 1) == (hash | 1) && strcmp(name_of(tables, symbol), name) == 0)
            return symbol;
        if (here & 1)
            return 0;
    }
    return 0;
}

/* Whether the file defines the operator, binds its own calls to that, and takes `function` from
 * elsewhere. A file that asks the dynamic linker for the operator that it defines gets ours. */
static bool has_own(const struct tables *tables, const char *operator, const char * function)
{
    size_t own = find_defined(tables, operator);
    bool takes = false;
    if (!own)
        return false;
    for (unsigned i = 0; i < 2; i++) {
        size_t count = tables->bytes[i] / sizeof *tables->moved[i];
        for (size_t j = 0; tables->moved[i] && j < count; j++) {
            size_t symbol = ELF64_R_SYM(tables->moved[i][j].r_info);
            if (symbol == own)
                return false;
            takes |= symbol && strcmp(name_of(tables, symbol), function) == 0;
        }
    }
    return takes;
}

static int look_for_operators(struct dl_phdr_info *file, size_t size, void *unused)
{
    struct tables tables = {0};
    (void)size;
    (void)unused;
    return read_tables(file, &tables) &&
           (has_own(&tables, "_Znwm", "malloc") || has_own(&tables, "_ZdlPv", "free"));
}

bool operators_of_others(void)
{
    static bool found; /* atomic relaxed, any thread; stays: such blocks outlive the file */
    if (!ATOMIC_LOAD_RELAXED(&found) && dl_iterate_phdr(look_for_operators, NULL))
        ATOMIC_STORE_RELAXED(&found, true);
    return ATOMIC_LOAD_RELAXED(&found);
}
