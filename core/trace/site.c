/* See site.h. */
#include "trace/site.h"

#include <string.h>

#include "map/metadata.h"
#include "os/os.h"

/* Recursion, and names of scopes, make sites without end: beyond SITES_MAX, only the SHORT_STACK
 * innermost frames count, of which a program has few. */
enum { SITES_MAX = 1 << 15, SHORT_STACK = 5 };

static struct site *newest; /* atomic: release on store pairs with acquire on load */
static struct site no_site;
static uint32_t last_number; /* atomic relaxed, any thread */

static uint64_t hash_of(const uintptr_t *frames, unsigned count)
{
    uint64_t hash = count;
    for (unsigned i = 0; i < count; i++) {
        hash = (hash ^ frames[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static uint64_t hash_of_name(const char *name)
{
    uint64_t hash = 0;
    for (; SCOPES && *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x9e3779b97f4a7c15u;
    return hash;
}

/* Searches the chain from `first` up to, but not including, `end`. */
static struct site *search_chain(
    struct site *first, const struct site *end, uint64_t hash, const uintptr_t *frames,
    unsigned count, const char *scope)
{
    for (struct site *site = first; site != end; site = site->next_in_chain)
        if (site->hash == hash && site->frames == count &&
            memcmp(site->frame, frames, count * sizeof *frames) == 0 &&
            (!SCOPES || strcmp(site->scope, scope) == 0))
            return site;
    return NULL;
}

static void link_newest(struct site *site)
{
    struct site *before = ATOMIC_LOAD_RELAXED(&newest);
    do
        site->next = before;
    while (!__atomic_compare_exchange_n(
        &newest, &before, site, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* NULL: there is no memory for them. */
static SLOW_PATH struct site **map_chains(void)
{
    size_t bytes = round_up(SITE_CHAINS * sizeof(struct site *), os_page_size());
    struct site **known = NULL, **mapped = os_map(bytes, os_page_size(), NULL);
    if (!mapped || __atomic_compare_exchange_n(
                       &site_chains, &known, mapped, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return mapped;
    os_discard(mapped, bytes);
    return known;
}

struct site *site_find(const uintptr_t *frames, unsigned count, uint64_t modules, const char *scope)
{
    uint64_t hash = hash_of(frames, count) ^ modules ^ hash_of_name(scope);
    struct site **table = ATOMIC_LOAD_ACQUIRE(&site_chains);
    if (UNLIKELY(!table) && !(table = map_chains()))
        return &no_site;
    struct site **chain = &table[hash % SITE_CHAINS];
    struct site *first = ATOMIC_LOAD_ACQUIRE(chain), *seen = NULL;
    struct site *found = search_chain(first, NULL, hash, frames, count, scope);
    if (LIKELY(found != NULL))
        return found;
    size_t bytes = sizeof(struct site) + count * sizeof *frames;
    bool is_short = count <= SHORT_STACK && !*scope;
    bool may_be_made = count && (is_short || ATOMIC_LOAD_RELAXED(&last_number) < SITES_MAX);
    struct site *site = may_be_made ? metadata_alloc(bytes) : NULL;
    if (!site && is_short)
        return &no_site;
    if (!site)
        return site_find(frames, (unsigned)size_min(count, SHORT_STACK), modules, "");
    site->hash = hash;
    site->modules = modules;
    site->frames = count;
    if (SCOPES)
        memcpy(site->scope, scope, strlen(scope));
    memcpy(site->frame, frames, count * sizeof *frames);
    site->number = ATOMIC_ADD_RELAXED(&last_number, 1) + 1;
    for (;;) {
        seen = site->next_in_chain = first;
        if (__atomic_compare_exchange_n(
                chain, &first, site, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
            break;
        /* Another thread may have made the same one. */
        found = search_chain(first, seen, hash, frames, count, scope);
        if (found) {
            metadata_free(site, bytes);
            return found;
        }
    }
    link_newest(site);
    return site;
}

struct site *site_newest(void)
{
    return ATOMIC_LOAD_ACQUIRE(&newest);
}

void site_count_lifetime(struct site *site, uint64_t lifetime_ns, uint64_t parts)
{
    enum { NS_PER_US = 1000 };
    uint64_t us = lifetime_ns / NS_PER_US;
    unsigned place = us ? 64 - (unsigned)__builtin_clzll(us) : 0;
    ATOMIC_ADD_RELAXED(&site->lifetime[size_min(place, SITE_LIFETIMES - 1)], parts);
}
