/* trace/signals: the stacks that handlers run on. */
#include "unit.h"

#include "os/os.h"
#include "trace/signals.h"

static void *stack;

static void end_by(int signal_number, siginfo_t *info, void *context)
{
    signals_pass_on(signal_number, info, context, true);
}

static bool is_on_it(const void *local)
{
    return (uintptr_t)local - (uintptr_t)stack < 128 * KIB;
}

static void nobody_needs_a_stack(void *unused)
{
    (void)unused;
    CHECK(!signals_give_stack(NULL));
}

static void take_and_go_on(int signal_number)
{
    volatile char local = (char)signal_number;
    CHECK(is_on_it((const void *)&local));
    signals_take_stack(&stack);
    CHECK(!stack && local == (char)signal_number);
}

/* As where a handler ends its thread, and the thread's exit handlers run on the handler's stack. */
static void end_inside_a_handler(void *unused)
{
    (void)unused;
    struct sigaction action = {.sa_handler = take_and_go_on, .sa_flags = SA_ONSTACK};
    signals_catch(end_by);
    CHECK((stack = signals_give_stack(NULL)) != NULL);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(raise(SIGUSR1) == 0);
}

static void take_it_back(void *unused)
{
    stack_t now;
    (void)unused;
    signals_catch(end_by);
    CHECK((stack = signals_give_stack(NULL)) != NULL);
    char *before = stack;
    signals_take_stack(&stack);
    CHECK(!stack && sigaltstack(NULL, &now) == 0 && now.ss_flags & SS_DISABLE);
    unit_expect_fault(before + os_page_size());
}

/* As where a library gives a thread a stack for its time, and puts back the one that was there when
 * the thread's heap is gone. */
static void put_it_back(void *unused)
{
    static char other[64 * KIB];
    stack_t theirs = {.ss_sp = other, .ss_size = sizeof other}, ours,
            none = {.ss_flags = SS_DISABLE};
    (void)unused;
    signals_catch(end_by);
    CHECK((stack = signals_give_stack(NULL)) != NULL);
    CHECK(sigaltstack(&theirs, &ours) == 0);
    void *before = stack;
    signals_take_stack(&stack);
    CHECK(stack == before);
    CHECK(sigaltstack(&ours, NULL) == 0);
    struct sigaction action = {.sa_handler = take_and_go_on, .sa_flags = SA_ONSTACK};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && raise(SIGUSR1) == 0);
    CHECK(sigaltstack(&none, NULL) == 0 && signals_give_stack(before) == before);
}

static void stacks_are_for_handlers(void **state)
{
    (void)state;
    unit_in_child(nobody_needs_a_stack, NULL);
}

static void a_stack_stays_while_it_is_in_use(void **state)
{
    (void)state;
    unit_in_child(end_inside_a_handler, NULL);
}

static void a_stack_stays_that_may_be_put_back(void **state)
{
    (void)state;
    unit_in_child(put_it_back, NULL);
}

static void a_stack_is_taken_back(void **state)
{
    (void)state;
    unit_in_child(take_it_back, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_are_for_handlers),
        cmocka_unit_test(a_stack_stays_while_it_is_in_use),
        cmocka_unit_test(a_stack_stays_that_may_be_put_back),
        cmocka_unit_test(a_stack_is_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
