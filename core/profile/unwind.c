/* See unwind.h. */
#include "profile/unwind.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <unwind.h>

#include "os/os.h"

/* Absent from statically linked programs. */
#pragma weak dlsym

static struct {
    _Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn, void *); /* NULL: by frame pointers */
    _Unwind_Ptr (*get_ip)(struct _Unwind_Context *);
    _Unwind_Word (*get_cfa)(struct _Unwind_Context *);
    _Unwind_Word (*get_register)(struct _Unwind_Context *, int);
    const void *(*find_table)(void *, void *[3]); /* what the tables have of an address */
    uintptr_t own_start, own_end; /* of the library, unless it is part of the program */
} unwinder;                       /* const once sampling has begun */

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* ---- Opening --------------------------------------------------------------------------------- */

static bool look_up(void *library, void *function, const char *name)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static bool open_library(void)
{
    void *(*open)(const char *, int), *library = NULL;
    _Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn, void *);
    /* By name: linkers warn of programs that have it and are static. */
    if (dlsym && look_up(RTLD_DEFAULT, &open, "dlopen"))
        library = open("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !look_up(library, &unwinder.get_ip, "_Unwind_GetIP") ||
        !look_up(library, &unwinder.get_cfa, "_Unwind_GetCFA") ||
        !look_up(library, &unwinder.get_register, "_Unwind_GetGR") ||
        !look_up(library, &unwinder.find_table, "_Unwind_Find_FDE") ||
        !look_up(library, &backtrace, "_Unwind_Backtrace"))
        return false;
    __atomic_store_n(&unwinder.backtrace, backtrace, __ATOMIC_RELEASE);
    return true;
}

void unwind_open(bool frames)
{
    static const char message[] =
        "hakmem: option sample_kib: libgcc_s.so.1 cannot be loaded: stacks "
        "are followed by frame pointers\n";
    uintptr_t start = (uintptr_t)__ehdr_start, end = (uintptr_t)_end;
    uintptr_t program = getauxval(AT_PHDR);
    if (program < start || program >= end) {
        unwinder.own_start = start;
        unwinder.own_end = end;
    }
    if (!frames && !unwinder.backtrace && !open_library())
        os_write(STDERR, message, sizeof message - 1);
}

/* ---- Walks ----------------------------------------------------------------------------------- */

/* Where calls push their return addresses it is known where these lie. */
#ifdef __x86_64__
enum { CALLS_PUSH = 1 };
#else
enum { CALLS_PUSH = 0 };
#endif

__attribute__((no_sanitize("address", "thread"))) static uintptr_t pushed_at(uintptr_t place)
{
    return *(const uintptr_t *)(place - sizeof(uintptr_t));
}

/* The number that tables have for the frame pointer. */
#ifdef __x86_64__
enum { FRAME_POINTER = 6 };
#else
enum { FRAME_POINTER = 29 };
#endif

struct walk {
    uintptr_t top; /* frames below it are the library's own */
    unsigned count;
    uintptr_t address[SITE_FRAMES_MAX];
    uintptr_t place[SITE_FRAMES_MAX]; /* stack pointer where the call was made */
    uintptr_t frame[SITE_FRAMES_MAX]; /* frame pointer there */
};

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *argument)
{
    struct walk *walk = argument;
    uintptr_t place = (uintptr_t)unwinder.get_cfa(context), address;
    if (place < walk->top)
        return _URC_NO_REASON;
    address = (uintptr_t)unwinder.get_ip(context);
    if (!address)
        return _URC_END_OF_STACK;
    walk->frame[walk->count] = (uintptr_t)unwinder.get_register(context, FRAME_POINTER);
    walk->place[walk->count] = place;
    walk->address[walk->count++] = address;
    return walk->count == SITE_FRAMES_MAX ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* Where the calling thread's stack lies. */
static void find_bounds(struct unwind_stack *stack)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;
    stack->low = stack->high = 1;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        stack->low = (uintptr_t)low;
        stack->high = (uintptr_t)low + size;
    }
    pthread_attr_destroy(&attributes);
}

static bool is_inside(const struct unwind_stack *stack, uintptr_t address)
{
    return address >= stack->low && address < stack->high;
}

/* Each frame begins with the frame pointer of its caller and the return address, and lies above the
 * one before, within the stack. False: there is none. */
__attribute__((no_sanitize("address", "thread"))) static bool follow_frame(
    const struct unwind_stack *stack, struct walk *walk)
{
    uintptr_t frame = walk->frame[walk->count - 1], below = walk->place[walk->count - 1];
    if (walk->count == SITE_FRAMES_MAX || frame < below || frame % sizeof(uintptr_t) ||
        frame >= stack->high || stack->high - frame < 2 * sizeof(uintptr_t))
        return false;
    const uintptr_t *words = (const uintptr_t *)frame;
    if (!words[1])
        return false;
    walk->place[walk->count] = frame + 2 * sizeof(uintptr_t);
    walk->frame[walk->count] = words[0];
    walk->address[walk->count++] = words[1];
    return true;
}

static void follow_frames(
    const struct unwind_stack *stack, const struct unwind_start *start, struct walk *walk)
{
    walk->frame[0] = start->frame;
    walk->place[0] = start->top;
    walk->address[walk->count++] = start->caller;
    while (start->top >= stack->low && follow_frame(stack, walk))
        continue;
}

/* Code that was compiled at run time is in no table, so that the walk ends there, but mostly keeps
 * frame pointers. They lead on to the first function that is in a table again, where the register
 * may hold anything. If none comes, it held something else from the start. */
static void follow_compiled(const struct unwind_stack *stack, struct walk *walk)
{
    unsigned known = walk->count;
    void *bases[3];
    if (!known || known == SITE_FRAMES_MAX)
        return;
    while (walk->top >= stack->low && follow_frame(stack, walk))
        if (unwinder.find_table((char *)walk->address[walk->count - 1] - 1, bases))
            return;
    if (walk->count < SITE_FRAMES_MAX)
        walk->count = known;
}

/* ---- Stacks that are kept -------------------------------------------------------------------- */

static struct unwind_kept *kept_for(struct unwind_stack *stack, const struct unwind_start *start)
{
    uint64_t hash = (start->top ^ start->caller << 7) * 0x9e3779b97f4a7c15u;
    return &stack->kept[(hash >> 32) % UNWIND_KEPT];
}

static bool is_kept(const struct unwind_kept *kept, uintptr_t top)
{
    if (!CALLS_PUSH || !kept->site || kept->top != top)
        return false;
    for (unsigned i = 0; i < kept->count; i++)
        if (pushed_at(top + kept->offset[i]) != kept->address[i])
            return false;
    return true;
}

/* A stack is kept only where all is memory from `top` on as long as the thread lives: a coroutine's
 * may be gone when another one, with the same innermost frames, lies where it lay, and is shorter.
 */
static void keep(
    const struct unwind_stack *stack, struct unwind_kept *kept, const struct walk *walk,
    struct site *site)
{
    kept->site = NULL;
    if (!CALLS_PUSH || !site->number || !is_inside(stack, walk->top))
        return;
    kept->top = walk->top;
    kept->count = walk->count;
    for (unsigned i = 0; i < walk->count; i++) {
        uintptr_t offset = walk->place[i] - walk->top;
        /* Not so where a signal handler was called. */
        if (offset > stack->high - walk->top || offset > UINT32_MAX ||
            pushed_at(walk->place[i]) != walk->address[i])
            return;
        kept->offset[i] = (uint32_t)offset;
        kept->address[i] = walk->address[i];
    }
    kept->site = site;
}

struct site *unwind_site(struct unwind_stack *stack, const struct unwind_start *start)
{
    struct unwind_kept *kept = kept_for(stack, start);
    if (is_kept(kept, start->top))
        return kept->site;
    if (!stack->high)
        find_bounds(stack);
    struct walk walk = {.top = start->top};
    _Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn, void *) =
        __atomic_load_n(&unwinder.backtrace, __ATOMIC_ACQUIRE);
    if (!backtrace)
        follow_frames(stack, start, &walk);
    else if (backtrace(take_frame, &walk) == _URC_END_OF_STACK)
        follow_compiled(stack, &walk);
    unsigned own = 0;
    while (own < walk.count &&
           walk.address[own] - unwinder.own_start < unwinder.own_end - unwinder.own_start)
        own++;
    struct site *site = site_find(walk.address + own, walk.count - own);
    keep(stack, kept, &walk, site);
    return site;
}
