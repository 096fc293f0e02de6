/* See fence.h. */
#include "hardened/fence.h"

#include "base/atomic.h"
#include "base/sparse.h"
#include "os/os.h"

/* Mappings that fences by rights may take; atomic relaxed, any thread. */
static size_t rights_left;

static bool take_rights(size_t mappings)
{
    size_t left = ATOMIC_LOAD_RELAXED(&rights_left);
    while (left >= mappings)
        if (__atomic_compare_exchange_n(
                &rights_left, &left, left - mappings, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return false;
}

void fence_prepare(void)
{
    enum { SHARE = 4 };
    ATOMIC_STORE_RELAXED(&rights_left, os_mapping_limit() / SHARE);
}

/* True if the system really closes a range that it says it has marked: emulators say yes to advice
 * that they do not know. Asked once, since a filter may kill the thread that asks. */
static bool marks_close(const void *address)
{
    enum { UNKNOWN, YES, NO };
    static unsigned char known; /* atomic relaxed, any thread */
    unsigned char answer = ATOMIC_LOAD_RELAXED(&known);
    if (answer == UNKNOWN) {
        answer = os_is_readable(address, 1) ? NO : YES;
        ATOMIC_STORE_RELAXED(&known, answer);
    }
    return answer == YES;
}

enum fence fence_start(void *address, size_t size, unsigned mappings)
{
    if (os_guard(address, size) && marks_close(address))
        return FENCE_MARKS;
    if (!take_rights(mappings))
        return FENCE_NONE;
    if (os_make_inaccessible(address, size))
        return FENCE_RIGHTS;
    fence_end(FENCE_RIGHTS, mappings);
    return FENCE_NONE;
}

void fence_end(enum fence fence, unsigned mappings)
{
    if (fence == FENCE_RIGHTS)
        ATOMIC_ADD_RELAXED(&rights_left, mappings);
}

bool fence_open(enum fence fence, void *address, size_t size)
{
    if (fence == FENCE_NONE) {
        if (os_is_watched() || !os_purge(address, size))
            sparse_clear(address, size);
        return true;
    }
    if (fence == FENCE_MARKS ? os_unguard(address, size) : os_make_writable(address, size))
        return true;
    /* A filter of system calls may have come since the range was closed. */
    return os_map_anew(address, size);
}

bool fence_close(enum fence fence, void *address, size_t size)
{
    /* Libraries that watch what goes would be told, and malloc may be here, under a lock that they
     * take then. What stays open goes later, from where they may be told. */
    if (os_is_watched()) {
        sparse_clear(address, size);
        return false;
    }
    if (fence == FENCE_MARKS && os_guard(address, size))
        return true;
    /* The system has guarded what lies before a locked page. */
    if (fence == FENCE_MARKS)
        os_unguard(address, size);
    if (!os_purge(address, size)) {
        /* It is locked, or a filter refuses: another mapping in its place has none. */
        if (fence == FENCE_RIGHTS && os_make_untouchable(address, size))
            return true;
        /* Closed, what keeps its memory would count as gone. */
        sparse_clear(address, size);
        return false;
    }
    return fence == FENCE_RIGHTS && os_make_inaccessible(address, size);
}

bool fence_close_again(enum fence fence, void *address, size_t size)
{
    if (os_is_watched())
        return false;
    return fence == FENCE_MARKS ? os_guard(address, size)
                                : fence == FENCE_RIGHTS && os_make_untouchable(address, size);
}
