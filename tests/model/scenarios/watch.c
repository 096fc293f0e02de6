/* Observers from outside the process, who write a request into its memory: api/watch.h. */
#include "api/watch.h"
#include "engine/model.h"

static struct heap heaps[2];

/* Of the request, the path stands for all that the observer wrote before. */
static void begin_recording(uint32_t request)
{
    CHECK(request == ATTACH_BEGIN && attachment.path[0] == 'p');
    attachment.is_recording = true;
}

static void be_traced(void)
{
    static const struct trace table = {.answer = begin_recording};
    trace = &table;
}

/* An answered request is over, and the observer may write the next one. Before, it looks whether
 * the request was taken: that orders nothing. */
static bool ask(void)
{
    attachment.path[0] = 'p';
    ATOMIC_STORE_RELEASE(&attachment.request, ATTACH_BEGIN);
    uint32_t before = ATOMIC_LOAD_RELAXED(&attachment.request);
    CHECK(before == ATTACH_BEGIN || before == ATTACH_NOTHING);
    if (ATOMIC_LOAD_ACQUIRE(&attachment.answers) == 0)
        return false;
    CHECK(ATOMIC_LOAD_RELAXED(&attachment.request) == ATTACH_NOTHING);
    attachment.path[0] = 'q';
    return true;
}

static void ask_and_look(void)
{
    if (ask())
        CHECK(attachment.is_recording);
}

static void ask_in_vain(void)
{
    if (ask())
        CHECK(!attachment.is_recording);
}

static void come_by(struct heap *heap)
{
    if (watch_is_called(heap))
        watch_look(heap);
}

static void come_by_with_0(void)
{
    come_by(&heaps[0]);
}

static void come_by_with_1(void)
{
    come_by(&heaps[1]);
}

static void answered_once(void)
{
    CHECK(attachment.answers == (attachment.request == ATTACH_NOTHING));
}

SCENARIO(watch_request) = {
    .name = "watch_request",
    .about = "an observer makes a request, which one of two threads takes",
    .prepare = be_traced,
    .thread = {ask_and_look, come_by_with_0, come_by_with_1},
    .finish = answered_once};

static void have_no_threads(void)
{
    be_traced();
    model_refuse_threads();
}

SCENARIO(watch_no_thread) = {
    .name = "watch_no_thread",
    .about = "and there is no thread to answer it",
    .prepare = have_no_threads,
    .thread = {ask_in_vain, come_by_with_0, come_by_with_1},
    .finish = answered_once};
