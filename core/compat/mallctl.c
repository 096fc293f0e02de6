/* mallctl, by name or by number: queries and settings of programs that are built for jemalloc.
 *
 * Programs read figures, and purge after they have freed much memory: redis reads ten times a
 * second, even while it makes no call of malloc, and purges after FLUSHALL. So every call is a slow
 * path, which may give idle memory back.
 *
 * A name without a counterpart gets the answer of a jemalloc that was built without it, ENOENT,
 * even if a jemalloc is loaded behind: that one serves no call.
 *
 * The number of a name (its MIB) begins with its place in the list, and has the number of an arena
 * where the name has it, as programs rely on.
 */
#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "api/environment.h"
#include "api/options.h"
#include "base/policy.h"
#include "compat/figures.h"
#include "compat/names.h"
#include "hakmem/hakmem.h"
#include "hardened.h"
#include "override/override.h"
#include "report/stats.h"
#include "scope/scope.h"
#include "thread/heap.h"

enum control {
#define CONTROL(id, ...) CONTROL_##id,
#include "compat/mallctl.def"
#undef CONTROL
    CONTROL_FIRST_OF_ARENAS = CONTROL_arena_small,
    CONTROL_COUNT = CONTROL_arena_destroy + 1
};

static const char names[] =
#define CONTROL(id, name, ...) name "\0"
#include "compat/mallctl.def"
#undef CONTROL
    ;

enum access { READ, WRITE, ACTS, TAKES };

static const struct {
    uint8_t bytes, access;
} forms[CONTROL_COUNT] = {
#define CONTROL(id, name, type, access, value) {sizeof(type), access},
#include "compat/mallctl.def"
#undef CONTROL
};

/* Arenas without scopes, the highest number that flags can name, and the one that stands for all.
 */
enum { ARENAS = 1, ARENAS_LAST = 4094, ARENAS_ALL = 4096 };

/* The version of jemalloc that this file follows, in jemalloc's form. */
#define VERSION_FOLLOWED "5.3.0-0-hakmem-" HAKMEM_VERSION

/* Atomic relaxed, any thread. */
static struct {
    uint64_t epoch;
    long sample_kib; /* the mean distance when sampling begins again */
} state = {.epoch = 1, .sample_kib = 512 /* jemalloc's lg_prof_sample */};

/* The scope that is the arena; NULL: none is. */
static struct hakmem_scope *scope_of(size_t arena)
{
    return SCOPES && arena != ARENAS_ALL ? scope_of_arena(arena) : NULL;
}

/* The number of a new arena; 0: there is no memory, or no number, or but one arena. */
static unsigned create_arena(void)
{
    struct hakmem_scope *scope = SCOPES ? hakmem_scope_create(NULL, 0, NULL, NULL) : NULL;
    unsigned arena = scope ? scope_arena(scope) : 0;
    if (arena <= ARENAS_LAST)
        return arena;
    hakmem_scope_destroy(scope);
    return 0;
}

/* The statistics of the arena, as far as names ask for them: `live`, its live bytes alone. */
static void collect(struct snapshot *now, size_t arena, bool live)
{
    struct hakmem_scope_figures scoped = {0};
    struct hakmem_scope *scope = scope_of(arena);
    if (scope) {
        *now = (struct snapshot){0};
        scope_look(scope, &scoped);
    } else {
        stats_collect(now);
    }
    if (!SCOPES || (!scope && arena != ARENAS_ALL))
        return;
    now->total.live_bytes += scope ? scoped.live_bytes : scope_live_of_all();
    if (live)
        return;
    size_t resident = scope_resident(scope);
    now->total.committed_bytes += resident;
    now->total.mapped_bytes += resident;
}

/* The value of a control, as the bits of its type. */
static uint64_t control_value(enum control control, size_t arena)
{
    struct snapshot now;
    const struct hakmem_stats *total = &now.total;
    bool live = control == CONTROL_stats_allocated || control == CONTROL_arena_small ||
                control == CONTROL_arena_large;
    if (control >= CONTROL_stats_allocated)
        collect(&now, control < CONTROL_FIRST_OF_ARENAS ? ARENAS_ALL : arena, live);
    switch (control) {
#define CONTROL(id, name, type, access, value)                                                     \
    case CONTROL_##id:                                                                             \
        return (uint64_t)(value);
#include "compat/mallctl.def"
#undef CONTROL
    default:
        return 0;
    }
}

/* jemalloc's -1 means never; here it is the longest delay. */
static int set_delay(ssize_t delay_ms)
{
    static const long longest_ms = 3600000;
    if (delay_ms < -1)
        return EFAULT;
    return hakmem_option_set(
        "purge_delay_ms", delay_ms < 0 || delay_ms > longest_ms ? longest_ms : (long)delay_ms);
}

/* Sets the option sample_kib, which differs from jemalloc's in its unit alone. */
static int set_active(bool active)
{
    long now = POLICY(sample_kib);
    if (active == (now != 0))
        return 0;
    if (now)
        ATOMIC_STORE_RELAXED(&state.sample_kib, now);
    long wanted = active ? ATOMIC_LOAD_RELAXED(&state.sample_kib) : 0;
    return hakmem_option_set("sample_kib", wanted) ? EFAULT : 0;
}

/* NULL: to the file that the environment names, or to one with jemalloc's default name. */
static int dump(const char *path)
{
    if (!path)
        path = environment_file(PROFILE_FILE);
    return hakmem_profile_write(path ? path : "jeprof.%p.heap") ? EFAULT : 0;
}

/* Lets the calling thread allocate from the arena. */
static int change_arena(size_t arena)
{
    struct hakmem_scope *scope = scope_of(arena);
    if (arena && !scope)
        return EFAULT;
    return SCOPES ? scope_change(scope) : 0;
}

/* Acts on a control; `value` is the written value, or else the arena of the name. */
static int act(enum control control, uint64_t value)
{
    switch (control) {
    case CONTROL_epoch:
        ATOMIC_ADD_RELAXED(&state.epoch, 1);
        return 0;
    case CONTROL_background_thread:
        options_set("background", value != 0);
        return 0;
    case CONTROL_thread_arena:
        return change_arena(value);
    case CONTROL_thread_idle:
    case CONTROL_thread_tcache_flush:
    case CONTROL_tcache_flush:
        hakmem_thread_flush();
        return 0;
    case CONTROL_arena_decay:
    case CONTROL_arena_purge:
        hakmem_purge();
        return 0;
    case CONTROL_arena_dirty_decay_ms:
    case CONTROL_arenas_dirty_decay_ms:
        return set_delay((ssize_t)value);
    case CONTROL_arena_reset:
        if (SCOPES)
            hakmem_scope_reset(scope_of(value));
        return 0;
    case CONTROL_arena_destroy:
        if (SCOPES)
            hakmem_scope_destroy(scope_of(value));
        return 0;
    case CONTROL_prof_active:
        return set_active(value != 0);
    case CONTROL_prof_dump:
        return dump((const char *)(uintptr_t)value); /* NOLINT(performance-no-int-to-ptr) */
    default:
        return 0;
    }
}

/* Copies as much as fits; true: the lengths agree. */
static bool copy_value(uint64_t value, size_t bytes, void *old, size_t *old_length)
{
    bool fits = *old_length == bytes;
    *old_length = size_min(*old_length, bytes);
    memcpy(old, &value, *old_length);
    return fits;
}

/* Why the name cannot be used with that arena; 0: it can. */
static int arena_error(enum control control, size_t arena)
{
    if (control < CONTROL_FIRST_OF_ARENAS || scope_of(arena))
        return 0;
    if (forms[control].access == ACTS)
        return EFAULT;
    return arena && arena != ARENAS_ALL ? ENOENT : 0;
}

/* All calls come here: reads and then writes, if the pointers for it are given. */
static int exchange(
    enum control control, size_t arena, void *old, size_t *old_length, const void *new,
    size_t new_length)
{
    size_t bytes = forms[control].bytes;
    int error = arena_error(control, arena);
    if (error)
        return error;
    bool reads = old || old_length, writes = new || new_length;
    uint64_t value = 0;
    if (forms[control].access == ACTS)
        return reads || writes ? EPERM : act(control, arena);
    if ((forms[control].access == READ && writes) || (forms[control].access == TAKES && reads))
        return EPERM;
    if (new &&new_length != bytes)
        return EINVAL;
    if (new)
        memcpy(&value, new, bytes);
    /* A call that writes the epoch reads the new one. */
    if (new &&control == CONTROL_epoch)
        act(control, value);
    /* Nobody would know the number of the new one. */
    bool creates = control == CONTROL_arenas_create && old && old_length;
    if (creates && *old_length != bytes)
        return EINVAL;
    if (old && old_length && !copy_value(control_value(control, arena), bytes, old, old_length))
        return EINVAL;
    if (SCOPES && creates && !*(const unsigned *)old)
        return EAGAIN;
    bool acts = (new &&control != CONTROL_epoch) || forms[control].access == TAKES;
    return acts ? act(control, value) : 0;
}

static void look_after_idle_memory(void)
{
    struct heap *heap = heap_enter();
    if (heap)
        heap_leave(heap);
}

EXPORT int mallctl(const char *name, void *old, size_t *old_length, void *new, size_t new_length)
{
    size_t number = 0;
    look_after_idle_memory();
    int control = names_find(names, name, &number);
    if (control < 0)
        return ENOENT;
    return exchange((enum control)control, number, old, old_length, new, new_length);
}

/* Counts the parts of a name between dots. `*number_at`: which part is a number; 0: none. */
static size_t count_parts(size_t control, size_t *number_at)
{
    size_t parts = 1;
    *number_at = 0;
    for (const char *name = names_at(names, control); *name; name++) {
        parts += *name == '.';
        if (*name == '#')
            *number_at = parts - 1;
    }
    return parts;
}

EXPORT int mallctlnametomib(const char *name, size_t *mib, size_t *length)
{
    size_t number = 0, number_at;
    int control = names_find(names, name, &number);
    if (control < 0)
        return ENOENT;
    *length = size_min(*length, count_parts((size_t)control, &number_at));
    for (size_t i = 0; i < *length; i++)
        mib[i] = i == 0 ? (size_t)control : number; /* which part it is, the name tells */
    return 0;
}

EXPORT int mallctlbymib(
    const size_t *mib, size_t length, void *old, size_t *old_length, void *new, size_t new_length)
{
    size_t number_at;
    look_after_idle_memory();
    if (!length || mib[0] >= CONTROL_COUNT || length != count_parts(mib[0], &number_at))
        return ENOENT;
    size_t number = number_at ? mib[number_at] : 0;
    return exchange((enum control)mib[0], number, old, old_length, new, new_length);
}
