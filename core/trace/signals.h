/* The signals by which a program dies of a mistake of its own: a handler for all of them, which
 * stands behind those of the program.
 *
 * Handlers run on a stack of their own, so that one that was used up does no harm. Each thread has
 * to be given one.
 */
#ifndef TRACE_SIGNALS_H
#define TRACE_SIGNALS_H

#include <signal.h>

#include "base/macros.h"

typedef void signals_handler(int signal, siginfo_t *info, void *context);

/* Handles SIGSEGV, SIGBUS and SIGABRT from now on, but for those that are ignored. Once. */
void signals_catch(signals_handler *handler);

/* True while the program has not put a handler of its own in the place of ours. */
bool signals_are_caught(int signal);

/* From our handler: goes on as if it were not there. Calls the handler that was there before, or
 * sees to it that the signal ends the program when ours returns, at the place where it came.
 * `at_once`: no other handler is called, since ours has made a mistake. */
void signals_pass_on(int signal, siginfo_t *info, void *context, bool at_once);

/* If signals are handled, gives the calling thread a stack for handlers, unless it has one. To be
 * taken back before the thread ends; the stack that it is on by then stays mapped. Both return the
 * stack for the next call, of any thread; NULL: none. A program that has put another stack in its
 * place may put ours back after the thread has ended for us: so it is not unmapped, but kept. */
void *signals_give_stack(void *kept);
void *signals_take_stack(void *stack);

#endif
