/* See engine.h: the search for an execution that fails.
 *
 * Dynamic partial-order reduction with sleep sets, after Flanagan and Godefroid (2005): when a step
 * conflicts with an earlier one of another thread, and no chain of conflicts orders them, its
 * thread is tried at that earlier point as well. Nothing else is tried there.
 */
#include <string.h>

#include "engine/engine.h"
#include "engine/search.h"

enum { STEPS_MAX = 1 << 16, OBJECTS_MAX = 1 << 13, SHOWN_MAX = 60 };

enum state { RUNNABLE, SLEEPING, ENDED, DEAD };

static struct {
    enum state state;
    struct op pending;
    const void *sleeps_on;
    bool awaits;         /* its next load is to see something new */
    struct clock before; /* by thread: steps that are ordered before its next one */
} threads[THREADS_MAX];

/* Sets of threads are bit masks. */
static struct step {
    struct op op;
    uint64_t note;
    uint32_t choice, choices;
    uint8_t thread;
    uint8_t enabled;
    uint8_t to_try, tried; /* other threads at this point */
    bool loads;            /* its choices are stores: all but the first were overwritten */
    uint8_t asleep;        /* trying them would repeat what was tried before */
} steps[STEPS_MAX];

/* What steps conflict over. The numbers of steps begin with 1 here. */
static struct object {
    const void *address;
    uint64_t execution;
    struct clock last, last_write;
    struct clock reads, writes; /* all that is ordered before the last ones */
} objects[OBJECTS_MAX];

static const struct scenario *scenario;
static int thread_count;
static uint32_t depth, given; /* steps taken; steps whose choice is given */
static uint8_t asleep;
static struct clock last_step;
static uint64_t executions, pruned, step_total;
static bool starting;

bool exploring, concurrent;

/* ---- Conflicts ------------------------------------------------------------------------------- */

static struct object *object_of(const void *address)
{
    size_t slot = ((uintptr_t)address >> 3) * 0x9e3779b97f4a7c15u >> 51;
    for (size_t tries = 0; tries < OBJECTS_MAX; tries++) {
        struct object *object = &objects[(slot + tries) % OBJECTS_MAX];
        if (object->execution != executions + 1)
            *object = (struct object){.address = address, .execution = executions + 1};
        if (object->address == address)
            return object;
    }
    model_fail("OBJECTS_MAX is too small");
}

static bool conflict(const struct op *a, const struct op *b)
{
    if (a->kind == OP_NONE || b->kind == OP_NONE)
        return false;
    if (a->kind == OP_FORK || b->kind == OP_FORK)
        return true;
    return a->object == b->object && (a->kind != OP_READ || b->kind != OP_READ);
}

static void try_also(uint32_t index, int thread)
{
    struct step *step = &steps[index];
    uint8_t bit = (uint8_t)(1 << thread);
    step->to_try |= step->enabled & bit ? bit : step->enabled;
}

/* The thread's next step is known: finds the last step that it conflicts with. */
static void look_back(int thread)
{
    const struct op *op = &threads[thread].pending;
    uint32_t found = 0;
    if (op->kind == OP_NONE)
        return;
    const struct object *object = object_of(op->object);
    const struct clock *last = op->kind == OP_FORK   ? &last_step
                               : op->kind == OP_READ ? &object->last_write
                                                     : &object->last;
    for (int i = 0; i < thread_count; i++)
        if (i != thread && last->at[i] > threads[thread].before.at[i] && last->at[i] > found)
            found = last->at[i];
    if (found)
        try_also(found - 1, thread);
}

/* Orders the step behind what it conflicts with. */
static void order(int thread, const struct op *op)
{
    struct clock *before = &threads[thread].before;
    struct object *object = object_of(op->object);
    bool write = op->kind != OP_READ;
    if (op->kind == OP_FORK)
        clock_join(before, &last_step);
    if (op->kind != OP_NONE)
        clock_join(before, &object->writes);
    if (op->kind != OP_NONE && write)
        clock_join(before, &object->reads);
    before->at[thread] = last_step.at[thread] = depth + 1;
    if (op->kind == OP_NONE)
        return;
    clock_join(write ? &object->writes : &object->reads, before);
    object->last.at[thread] = depth + 1;
    if (write)
        object->last_write.at[thread] = depth + 1;
}

void search_lock_released(const void *lock)
{
    if (concurrent)
        clock_join(&object_of(lock)->writes, &threads[current].before);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static bool is_enabled(int thread)
{
    const struct op *op = &threads[thread].pending;
    if (threads[thread].state != RUNNABLE)
        return false;
    if (op->kind == OP_LOCK)
        return *(const uint32_t *)op->object == 0; /* nobody holds it */
    return !threads[thread].awaits || op->kind != OP_READ || atomic_has_news(op->object, thread);
}

static void new_step(struct step *step, uint8_t enabled)
{
    uint8_t awake = enabled & (uint8_t)~asleep;
    int thread = current != MAIN && awake >> current & 1 ? current : __builtin_ctz(awake);
    uint8_t bit = (uint8_t)(1 << thread);
    *step = (struct step){
        .choices = 1,
        .thread = (uint8_t)thread,
        .enabled = enabled,
        .to_try = bit,
        .asleep = asleep};
}

/* Takes the step: the thread goes on once it runs. */
static void take(struct step *step)
{
    int thread = step->thread;
    step->op = threads[thread].pending;
    undo_begin(thread);
    order(thread, &step->op);
    asleep = (step->asleep | step->tried) & (uint8_t) ~(1 << thread);
    for (int i = 0; i < thread_count; i++) {
        if (i == thread || threads[i].state > SLEEPING || !conflict(&step->op, &threads[i].pending))
            continue;
        asleep &= (uint8_t) ~(1 << i);
        try_also(depth, i);
    }
    depth++;
    step_total++;
}

static void fail_deadlock(void)
{
    for (int i = 0; i < thread_count; i++)
        if (threads[i].state < ENDED)
            search_report_wait(i, &threads[i].pending, threads[i].state == SLEEPING);
    model_fail("nobody can go on");
}

/* Lets the next thread run; returns when that is the calling one, or never. */
static void dispatch(void)
{
    uint8_t enabled = 0;
    bool left = false;
    for (int i = 0; i < thread_count; i++) {
        enabled |= (uint8_t)(is_enabled(i) << i);
        left |= threads[i].state < ENDED;
    }
    if (!enabled && left)
        fail_deadlock();
    bool repeats = enabled && depth >= given && !(enabled & ~asleep);
    pruned += repeats;
    if (!left || repeats) {
        concurrent = left;
        fiber_switch(MAIN);
        return;
    }
    if (depth == STEPS_MAX)
        model_fail("more than %d steps: does a loop never end?", STEPS_MAX);
    struct step *step = &steps[depth];
    if (depth >= given)
        new_step(step, enabled);
    if (!(enabled >> step->thread & 1))
        model_fail("the scenario does not repeat itself");
    take(step);
    fiber_switch(step->thread);
}

void search_step(struct op op)
{
    if (!concurrent)
        return;
    threads[current].pending = op;
    look_back(current);
    if (starting)
        fiber_switch(MAIN);
    else
        dispatch();
    threads[current].pending = (struct op){.kind = OP_NONE};
}

unsigned search_choose(unsigned count)
{
    if (!concurrent)
        return 0;
    struct step *step = &steps[depth - 1];
    step->choices = count;
    return step->choice;
}

unsigned search_choose_store(unsigned count)
{
    if (concurrent)
        steps[depth - 1].loads = true;
    return search_choose(count);
}

void search_note(uint64_t value)
{
    if (concurrent)
        steps[depth - 1].note = value;
}

void model_yield(void)
{
    threads[current].awaits = true;
}

bool search_takes_news(void)
{
    bool awaits = concurrent && threads[current].awaits;
    if (concurrent)
        threads[current].awaits = false;
    return awaits;
}

void search_sleep(const void *object, const void *code)
{
    threads[current].state = SLEEPING;
    threads[current].sleeps_on = object;
    threads[current].pending = (struct op){OP_NONE, object, "awake", code};
    dispatch();
}

void search_wake_one(const void *object)
{
    int sleepers[THREADS_MAX];
    unsigned count = 0;
    for (int i = 0; i < thread_count; i++)
        if (threads[i].state == SLEEPING && threads[i].sleeps_on == object)
            sleepers[count++] = i;
    if (!count)
        return;
    int woken = sleepers[search_choose(count)];
    threads[woken].state = RUNNABLE;
    clock_join(&threads[woken].before, &threads[current].before);
}

/* Of each other thread the child has all writes up to some point since its last step, by choice. */
static void tear(void)
{
    unsigned outcomes = 1, chosen;
    for (int i = 0; i < thread_count; i++)
        if (i != current && threads[i].state != DEAD)
            outcomes *= undo_places(i) + 1;
    chosen = search_choose(outcomes);
    for (int i = 0; i < thread_count; i++) {
        if (i == current || threads[i].state == DEAD)
            continue;
        unsigned places = undo_places(i) + 1;
        undo_to_place(i, chosen % places);
        chosen /= places;
    }
}

void model_fork(void)
{
    search_step((struct op){OP_FORK, threads, "fork", __builtin_return_address(0)});
    tear();
    for (int i = 0; i < thread_count; i++) {
        if (i == current)
            continue;
        threads[i].state = DEAD;
        shadow_join(i);
    }
    system_fork(current);
}

void search_abort(void)
{
    if (concurrent && scenario->aborts)
        fiber_switch(MAIN);
}

bool search_has_ended(int thread)
{
    search_step((struct op){OP_READ, &threads[thread], "is alive?", __builtin_return_address(0)});
    return threads[thread].state == ENDED;
}

/* ---- Executions ------------------------------------------------------------------------------ */

static void thread_body(void)
{
    system_thread_starts(current);
    scenario->thread[current]();
    search_step((struct op){OP_WRITE, &threads[current], "end", __builtin_return_address(0)});
    threads[current].state = ENDED;
    dispatch();
}

static void execute(void)
{
    memset(threads, 0, sizeof threads);
    memset(&last_step, 0, sizeof last_step);
    depth = 0;
    asleep = 0;
    for (int i = 0; i < CLOCKS; i++)
        undo_begin(i);
    shadow_start();
    system_start();
    exploring = concurrent = starting = true;
    for (int i = 0; i < thread_count; i++)
        fiber_start(i, thread_body);
    starting = false;
    dispatch();
    bool ended = !concurrent;
    concurrent = false;
    if (ended && scenario->aborts)
        model_fail("an execution in which the defect was not noticed");
    if (ended) {
        for (int i = 0; i < thread_count; i++)
            if (threads[i].state == ENDED)
                shadow_join(i);
        if (scenario->finish)
            scenario->finish();
    }
    exploring = false;
    shadow_end();
}

/* True when one thread more may be interrupted than is in the steps before `index`. */
static bool may_preempt(uint32_t index)
{
    unsigned preemptions = 1;
    for (uint32_t i = 1; i < index; i++)
        preemptions +=
            steps[i].thread != steps[i - 1].thread && steps[i].enabled >> steps[i - 1].thread & 1;
    return !scenario->preemptions_max || preemptions <= scenario->preemptions_max;
}

/* True when the step at `index` may have its next outcome: where few preemptions are tried, loads
 * return as few overwritten values. */
static bool may_vary(uint32_t index)
{
    unsigned overwritten = 1;
    if (!scenario->preemptions_max || !steps[index].loads)
        return true;
    for (uint32_t i = 0; i < index; i++)
        overwritten += steps[i].loads && steps[i].choice;
    return overwritten <= scenario->preemptions_max;
}

/* Sets the choices of the next execution; false when there is none. */
static bool advance(void)
{
    for (; depth > 0; depth--) {
        struct step *step = &steps[depth - 1];
        if (++step->choice < step->choices && may_vary(depth - 1))
            break;
        step->tried |= (uint8_t)(1 << step->thread);
        uint8_t rest = step->to_try & step->enabled & (uint8_t) ~(step->tried | step->asleep);
        if (rest && may_preempt(depth - 1)) {
            step->thread = (uint8_t)__builtin_ctz(rest);
            step->choice = 0;
            step->choices = 1;
            break;
        }
    }
    given = depth;
    return depth > 0;
}

struct search_result search_run(const struct scenario *chosen, uint64_t executions_max)
{
    scenario = chosen;
    executions = pruned = step_total = given = 0;
    thread_count = 0;
    while (thread_count < THREADS_MAX && scenario->thread[thread_count])
        thread_count++;
    bool more = true;
    while (more && (!executions_max || executions < executions_max)) {
        execute();
        executions++;
        more = advance();
    }
    return (struct search_result){executions - pruned, step_total, !more};
}

void search_print_trace(void (*print)(const struct op *op, int thread, uint64_t note))
{
    for (uint32_t i = depth > SHOWN_MAX ? depth - SHOWN_MAX : 0; i < depth; i++)
        print(&steps[i].op, steps[i].thread, steps[i].note);
}
