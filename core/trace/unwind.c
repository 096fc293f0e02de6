/* See unwind.h. */
#include "trace/unwind.h"

#include <pthread.h>
#include <sys/auxv.h>

#include "base/bits.h"
#include "os/os.h"
#include "trace/frames.h"
#include "trace/loaded.h"
#include "trace/log_modules.h"
#include "trace/python.h"

/* This library, unless it is part of the program. Const once sampling has begun. */
static struct range own;

/* By frame pointers alone. Atomic relaxed, any thread. */
static bool is_by_pointers;

/* 0: the library has not been started yet. */
static pthread_t first_thread;

__attribute__((constructor(65533))) static void note_first_thread(void)
{
    first_thread = pthread_self();
}

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

void unwind_open(bool by_pointers)
{
    struct range range = {(uintptr_t)__ehdr_start, (uintptr_t)_end};
    if (!range_has(&range, getauxval(AT_PHDR)))
        own = range;
    ATOMIC_STORE_RELAXED(&is_by_pointers, by_pointers);
}

/* ---- Walks ----------------------------------------------------------------------------------- */

/* Where the return address has no register, calls push it, and the place of each is known. */
enum { CALLS_PUSH = RETURN_COLUMN / (int)FRAME_REGISTERS };

__attribute__((no_sanitize("address", "thread"))) static uintptr_t word_below(
    uintptr_t place, unsigned words)
{
    return *(const uintptr_t *)(place - words * sizeof(uintptr_t));
}

static uintptr_t pushed_at(uintptr_t place)
{
    return word_below(place, 1);
}

struct walk {
    unsigned count;
    uintptr_t address[SITE_FRAMES_MAX];
    uintptr_t place[SITE_FRAMES_MAX]; /* stack pointer where the call was made */
    uintptr_t frame[SITE_FRAMES_MAX]; /* frame pointer there */
};

/* The first thread's stack grows down from the program's arguments, and the kernel maps nothing
 * else within 128 MiB of there. False: `top` is on another stack. */
static bool find_first_bounds(struct unwind_stack *stack, uintptr_t top)
{
    static const size_t first_stack_max = 64 * MIB;
    uintptr_t high = round_up((uintptr_t)getauxval(AT_EXECFN), os_page_size());
    if (high - top > first_stack_max)
        return false;
    stack->low = high - first_stack_max;
    stack->high = high;
    return true;
}

/* pthread_getattr_np itself allocates, holding a lock of the thread's: a call within it would wait
 * for itself. */
__attribute__((no_sanitize("address", "thread"))) static bool is_being_asked(
    const struct trace_start *start)
{
    enum { LENGTH_MAX = 4096, CALLS_BYTES = 1024 };
    uintptr_t function = (uintptr_t)pthread_getattr_np, top = start->top;
    size_t rest = size_min(CALLS_BYTES, round_up(top + 1, os_page_size()) - top);
    if (rest < CALLS_BYTES && os_is_readable((const void *)top, CALLS_BYTES))
        rest = CALLS_BYTES;
    bool found = start->caller - function < LENGTH_MAX;
    for (uintptr_t place = top; place + sizeof place <= top + rest; place += sizeof place)
        found |= *(const uintptr_t *)place - function < LENGTH_MAX;
    return found;
}

/* For the first thread, pthread_getattr_np would read a file through stdio, whose locks the thread
 * may hold. */
static bool may_ask(const struct trace_start *start)
{
    return first_thread && first_thread != pthread_self() && !is_being_asked(start);
}

/* Finds where the calling thread's stack lies, if it can ask now. */
static void find_bounds(struct unwind_stack *stack, const struct trace_start *start)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;
    if (find_first_bounds(stack, start->top) || !may_ask(start))
        return;
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

/* The library's own code where it is linked into a program: core/hakmem.ld. The linker makes these,
 * if there is such a section. */
#define OWN_CODE const char __attribute__((weak, visibility("hidden")))
extern OWN_CODE __start_hakmem_text[], __stop_hakmem_text[];

/* The library keeps frame pointers where it does not leave the program's call by a jump. */
static bool is_own(uintptr_t pc)
{
    return pc - (uintptr_t)__start_hakmem_text <
           (uintptr_t)__stop_hakmem_text - (uintptr_t)__start_hakmem_text;
}

/* Code without tables, as it is compiled at run time, mostly keeps frame pointers. They lead on to
 * code that has tables again. If they lead to none, they were no frame pointers: the walk ended
 * before. It ends as well where a Python function runs, whose own frames lead on from there. */
static void walk_up(
    const struct unwind_stack *stack, const struct trace_start *start, bool is_python,
    struct walk *walk)
{
    unsigned most = is_python ? SITE_FRAMES_MAX / 2 : SITE_FRAMES_MAX;
    bool by_pointers = ATOMIC_LOAD_RELAXED(&is_by_pointers), goes_on = true;
    struct reader reader = {.find = by_pointers ? NULL : loaded_code, .is_sampling = true};
    struct frame frame = {.pc = start->caller};
    unsigned known = 1;
    if (is_inside(stack, start->top))
        reader.stack = (struct range){start->top, stack->high};
    frame.registers[STACK_POINTER] = start->top;
    frame.registers[FRAME_POINTER] = start->frame;
    while (goes_on && walk->count < most) {
        walk->place[walk->count] = frame.registers[STACK_POINTER];
        walk->frame[walk->count] = frame.registers[FRAME_POINTER];
        walk->address[walk->count++] = frame.pc;
        bool leads_on = by_pointers || is_own(frame.pc);
        if (is_python && python_runs(frame.pc))
            return;
        goes_on = frame_up(&frame, &reader);
        if (frame.had_table || leads_on)
            known = walk->count + goes_on;
    }
    /* A coroutine that never returns may have anything for its return address. */
    if (!goes_on && !frame.had_table && known > 1 &&
        !can_read(&reader, walk->address[known - 1], 1))
        known--;
    if (!goes_on && known < walk->count)
        walk->count = known;
}

/* ---- Stacks that are kept -------------------------------------------------------------------- */

static struct unwind_kept *kept_for(struct unwind_stack *stack, const struct trace_start *start)
{
    uint64_t hash = (start->top ^ start->caller << 7) * 0x9e3779b97f4a7c15u;
    return &stack->kept[(hash >> 32) % UNWIND_KEPT];
}

/* Most functions save the caller's frame pointer right below the return address. */
enum { CHAINED_WORDS = 2 };

/* If a frame has a variable length, by alloca or alignment, only its frame pointer tells where it
 * ends. The same return address, of an earlier call, may still stand where another such frame
 * ended. So the frame pointers of all frames that may be such have to be equal, too: those that
 * point to where the caller's frame pointer is saved. */

static uintptr_t pointer_below(uintptr_t next_place)
{
    return next_place - CHAINED_WORDS * sizeof(uintptr_t);
}

static bool is_kept(const struct unwind_kept *kept, const struct trace_start *start)
{
    uintptr_t top = start->top;
    if (!CALLS_PUSH || !kept->site || kept->top != top)
        return false;
    for (unsigned i = 0; i < kept->count; i++)
        if (pushed_at(top + kept->offset[i]) != kept->address[i])
            return false;
    for (uint32_t chained = kept->chained; chained; chained &= chained - 1) {
        const uint32_t *offset = &kept->offset[bits_lowest(chained)];
        if (word_below(top + offset[0], CHAINED_WORDS) != pointer_below(top + offset[1]))
            return false;
    }
    for (unsigned i = 0; i < kept->pointers; i++) {
        struct unwind_pointer at = kept->pointer[i];
        uintptr_t place = top + kept->offset[at.call];
        uintptr_t pointer = at.words ? word_below(place, at.words) : start->frame;
        if (pointer != pointer_below(top + kept->offset[at.frame + 1]))
            return false;
    }
    return true;
}

static bool add_pointer(struct unwind_kept *kept, unsigned frame, unsigned call, unsigned words)
{
    if (frame == call && words == CHAINED_WORDS) {
        kept->chained |= (uint32_t)1 << frame;
        return true;
    }
    if (kept->pointers == UNWIND_POINTERS)
        return false;
    kept->pointer[kept->pointers++] = (struct unwind_pointer){
        .frame = (uint8_t)frame, .call = (uint8_t)call, .words = (uint8_t)words};
    return true;
}

/* How many registers a function may have to save, mostly right below the return address. */
enum { SAVES_MAX = 6 };

/* Notes where the frame's frame pointer is saved: by the first function called from there that
 * saves it. An unwritten word may look like a saved pointer, so there may be several places. False:
 * there is none. */
static bool add_pointers(
    struct unwind_kept *kept, const struct walk *walk, const struct trace_start *start,
    unsigned frame)
{
    uintptr_t pointer = walk->frame[frame];
    for (unsigned call = frame; call > 0; call--) {
        uintptr_t end = walk->place[call], called = walk->frame[call - 1];
        uintptr_t length = (end - walk->place[call - 1]) / sizeof end;
        unsigned last = called == pointer_below(end) ? CHAINED_WORDS : 1 + SAVES_MAX;
        bool is_saved = false;
        for (unsigned words = CHAINED_WORDS; words <= last && words <= length; words++) {
            if (word_below(end, words) != pointer)
                continue;
            if (!add_pointer(kept, frame, call, words))
                return false;
            is_saved = true;
        }
        if (called != pointer)
            return is_saved;
    }
    return pointer == start->frame && add_pointer(kept, frame, 0, 0);
}

/* GCC stores the end of a frame that it aligns below the place that the frame pointer points to,
 * among the saved registers. */
static bool ends_by_word(const struct walk *walk, unsigned frame)
{
    uintptr_t pointer = walk->frame[frame], place = walk->place[frame];
    uintptr_t end = walk->place[frame + 1];
    if (pointer % sizeof pointer || pointer < place || pointer >= end)
        return false;
    for (unsigned word = 1; word <= SAVES_MAX && word <= (pointer - place) / sizeof pointer; word++)
        if (word_below(pointer, word) == end)
            return true;
    return false;
}

/* Notes the frame pointers that decide where frames end. False: they cannot be found. */
static bool keep_pointers(
    struct unwind_kept *kept, const struct walk *walk, const struct trace_start *start)
{
    kept->chained = kept->pointers = 0;
    for (unsigned i = 0; i + 1 < walk->count; i++) {
        bool is_told = walk->frame[i] == pointer_below(walk->place[i + 1]);
        if (is_told ? !add_pointers(kept, walk, start, i) : ends_by_word(walk, i))
            return false;
    }
    return true;
}

/* Keeps a stack only if it is the thread's own, mapped as long as the thread lives: a coroutine's
 * may be gone, and a shorter one with the same innermost frames lie in its place. */
static void keep(
    const struct unwind_stack *stack, struct unwind_kept *kept, const struct walk *walk,
    const struct trace_start *start, struct site *site)
{
    kept->site = NULL;
    uintptr_t top = start->top;
    if (!CALLS_PUSH || !site->number || !is_inside(stack, top))
        return;
    kept->top = top;
    kept->count = walk->count;
    for (unsigned i = 0; i < walk->count; i++) {
        uintptr_t offset = walk->place[i] - top;
        /* A call of a signal handler pushes no return address. */
        if (offset > stack->high - top || offset > UINT32_MAX ||
            pushed_at(walk->place[i]) != walk->address[i])
            return;
        kept->offset[i] = (uint32_t)offset;
        kept->address[i] = walk->address[i];
    }
    if (keep_pointers(kept, walk, start))
        kept->site = site;
}

static bool is_where_it_was(const struct site *site)
{
    return LIKELY(!site->modules) || site->modules == modules_of_stack(site->frame, site->frames);
}

struct site *unwind_site(struct unwind_stack *stack, const struct trace_start *start)
{
    struct unwind_kept *kept = kept_for(stack, start);
    uintptr_t python = python_frame();
    if (!python && is_kept(kept, start) && is_where_it_was(kept->site))
        return kept->site;
    if (!stack->high)
        find_bounds(stack, start);
    struct walk walk;
    walk.count = 0;
    walk_up(stack, start, python != 0, &walk);
    unsigned skipped = 0;
    while (skipped < walk.count && range_has(&own, walk.address[skipped]))
        skipped++;
    const uintptr_t *frames = walk.address + skipped;
    unsigned count = walk.count - skipped;
    uint64_t modules = modules_of_stack(frames, count);
    if (python)
        count += python_places(python, walk.address + walk.count, SITE_FRAMES_MAX - walk.count);
    struct site *site = site_find(frames, count, modules, "");
    if (!python)
        keep(stack, kept, &walk, start, site);
    return site;
}
