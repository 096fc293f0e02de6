/* Sites: the stacks that sampled blocks were allocated from, and what became of the blocks.
 *
 * A site is found by its frames, in a table of hashed chains, and is never removed. Sums count what
 * the samples stand for: bytes that were asked for, and blocks, in parts of one, since few samples
 * stand for a whole number of them.
 *
 * No lock: chains only grow at their heads, by one atomic step, and the sums are atomic.
 */
#ifndef TRACE_SITE_H
#define TRACE_SITE_H

#include "base/atomic.h"
#include "base/macros.h"

enum {
    SITE_FRAMES_MAX = 32,
    SITE_PARTS = 256,   /* of a block */
    SITE_LIFETIMES = 32 /* below 1 us, 2 us, 4 us .. */
};

struct site {
    struct site *next_in_chain; /* const once linked */
    struct site *next;          /* the same: the site made before */
    uint64_t hash;              /* const, as the two below and the frames */
    uint64_t modules;           /* const: of modules_of_stack, when it was made */
    uint32_t number;            /* from 1; 0: of samples without a site */
    uint32_t frames;
    uint64_t born_samples; /* these are atomic relaxed, any thread */
    uint64_t born_bytes;
    uint64_t born_parts;
    uint64_t dead_samples; /* dead: freed, or moved by realloc */
    uint64_t dead_bytes;
    uint64_t dead_parts;
    uint64_t remote_parts;             /* of these, freed by another thread */
    uint64_t realloc_parts;            /* of these, moved by realloc */
    uint64_t lifetime[SITE_LIFETIMES]; /* of these, parts by their lifetime */
    uintptr_t frame[];                 /* addresses behind the calls, innermost first */
};

/* So many, by hash, the newest site first; mapped for the first one. It and they are atomic:
 * release on store pairs with acquire on load. Outside of site.c nobody but the descriptor looks at
 * them. */
enum { SITE_CHAINS = 4096 };
extern struct site **site_chains;

/* The site of such a stack in such modules, made if need be; the one without frames when there is
 * no memory. */
struct site *site_find(const uintptr_t *frames, unsigned count, uint64_t modules);

/* The site made last; the others follow by `next`. */
struct site *site_newest(void);

/* A block died after so many nanoseconds. */
void site_count_lifetime(struct site *site, uint64_t lifetime_ns, uint64_t parts);

#endif
