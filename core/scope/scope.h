/* The wall to scope/: memory by part of a program.
 *
 * A *scope* is a named set of blocks that lie apart from all others, in 2 MiB pieces of their own,
 * so that the program knows what a part of it holds, can bound it, and can end it at once. A thread
 * *enters* a scope, and from then on its calls of malloc are served from there; a block goes back
 * by plain free, in any thread.
 *
 *     the allocator    a thread that entered a scope        a region of kind REGION_SCOPE
 *                        | misses, since its heap is            | is freed, or asked for
 *                        v parked all the time                  v
 *     scope/           scope_alloc                          scope_free, scope_size
 *
 * No class map knows these blocks, and no page map entry is a superslab's, so they leave the hit
 * paths by tests that these make anyway, and no list of slabs or superslabs has them. Without the
 * folder SCOPES is 0, and the questions below are gone. The hardened library is built without.
 */
#ifndef SCOPE_SCOPE_H
#define SCOPE_SCOPE_H

#include "base/macros.h"

enum { SCOPES = HAKMEM_SCOPES };

struct hakmem_scope;
struct hakmem_scope_figures;
struct sample;
struct scope_cache;
struct text;
struct trace_start;

/* What a thread has entered, the last scope first. Owner thread only. */
struct scope_entry {
    struct hakmem_scope *scope; /* NULL: allocations are served from no scope */
    struct scope_entry *below;  /* entered before */
    struct hakmem_scope *asked; /* the entry hides scopes while the callback of this one runs */
    struct scope_cache *cache;  /* see scope/cache.h; NULL: not yet */
    struct scope_cache *open;   /* the cache while it is open; lock of the tree; atomic relaxed */
    unsigned calls;             /* allocations until it has one */
};

extern __thread struct scope_entry *scope_entered __attribute__((tls_model("initial-exec")));

/* True: allocations of the calling thread come from a scope. */
ALWAYS_INLINE bool scope_is_entered(void)
{
    return SCOPES && UNLIKELY(scope_entered != NULL) && scope_entered->scope;
}

/* ---- For the allocator ----------------------------------------------------------------------- */

/* A block of the scope that the calling thread has entered; the arguments are those of alloc_any.
 * NULL: there is no memory, or the scope is at its limit. */
void *scope_alloc(
    size_t size, size_t alignment, unsigned size_class, bool zero, const struct trace_start *start);

/* alloc_slow and free_slow of any block for a thread that has entered something, which may have the
 * block at hand, or keep it so. */
void *scope_malloc(size_t size, const struct scope_entry *entry);
void scope_release(void *block, const struct scope_entry *entry);

/* Frees a block in a region of a scope. Aborts if it is not the start of a live one. */
void scope_free(void *block);

/* Usable bytes of such a block. Aborts, naming `call`, if it is not the start of a live one. */
size_t scope_size(const void *block, const char *call);

/* Bytes from the address, anywhere in such a region, to the end of the block there; 0: there is
 * none. */
size_t scope_object(const void *address);

/* Says of which scope the address in such a region is. */
void scope_describe(struct text *text, const void *address);

/* The sample of a live block in such a region; NULL: it is none. */
struct sample *scope_sample(const void *block);

/* Bytes of a name of scope_name, and a NUL. */
#define SCOPE_PATH_BYTES 96

/* The name of a scope, behind those of the nearest ones around it: "tenant / request". */
void scope_name(const struct hakmem_scope *scope, char name[SCOPE_PATH_BYTES]);

/* The calling thread ends, and leaves what it has entered. */
void scope_thread_ends(void);

/* Shuts all caches: from now on calls do what they have to. */
void scope_shut_caches(void);

/* Whether the calling thread, interrupted by a signal handler, holds a lock of a scope. */
bool scope_holds_lock(void);

/* In a child of fork: repairs scopes whose locks were held by threads that do not exist here. The
 * arguments are those of lock_inherit. */
void scope_begin_process(uint32_t before, uint32_t now);

/* ---- For the exported names: see hakmem.h ---------------------------------------------------- */

struct hakmem_scope *scope_create(
    const char *name, size_t limit, int (*callback)(struct hakmem_scope *, size_t, void *),
    void *argument);
int scope_enter(struct hakmem_scope *scope);
void scope_leave(struct hakmem_scope *scope);
/* malloc or realloc as if the thread were in the scope. */
void *scope_take(struct hakmem_scope *scope, void *block, size_t size, size_t alignment);
void scope_usage(struct hakmem_scope *scope, struct hakmem_scope_figures *usage);
void scope_limit(struct hakmem_scope *scope, size_t limit);
void scope_reset(struct hakmem_scope *scope);
void scope_destroy(struct hakmem_scope *scope);

/* ---- For jemalloc's names, to which a scope is an arena: see compat/ ------------------------- */

/* The figures of a scope but for its resident bytes, if it lives; else false. */
bool scope_look(struct hakmem_scope *scope, struct hakmem_scope_figures *usage);

/* Resident bytes of a scope with those inside it, or, with NULL, of all. Asks the system for each
 * page. */
size_t scope_resident(const struct hakmem_scope *scope);

/* Live bytes of all scopes. */
size_t scope_live_of_all(void);

/* Highest number of an arena; 0: no scope was ever made. */
unsigned scope_arenas(void);

/* The number of a scope, which it keeps. */
unsigned scope_arena(const struct hakmem_scope *scope);

/* The scope of that number; NULL: none lives. */
struct hakmem_scope *scope_of_arena(size_t arena);

/* The number of the scope that the calling thread is in; 0: none. */
unsigned scope_arena_entered(void);

/* Leaves the last entry, if there is one, and enters this scope, or, with NULL, none. Returns 0, or
 * ENOMEM. */
int scope_change(struct hakmem_scope *scope);

#endif
