/* One handler for the signals by which a program dies of its own mistakes; the program's handlers
 * come before it.
 *
 * Handlers run on a stack of their own, since the usual one may be used up. Each thread has to be
 * given one.
 */
#ifndef TRACE_SIGNALS_H
#define TRACE_SIGNALS_H

#include <signal.h>

#include "base/macros.h"

typedef void signals_handler(int signal, siginfo_t *info, void *context);

/* Handles SIGSEGV, SIGBUS and SIGABRT from now on, except ignored ones. To be called once. */
void signals_catch(signals_handler *handler);

/* True while the program has not put a handler of its own in the place of ours. */
bool signals_are_caught(int signal);

/* For our handler: goes on as if it were not there. Calls the earlier handler, or lets the signal
 * end the program, at the place where it came, when ours returns. `at_once`: no other handler is
 * called, since ours has made a mistake. */
void signals_pass_on(int signal, siginfo_t *info, void *context, bool at_once);

/* If signals are handled, gives the calling thread a stack for handlers, unless it has one. To be
 * taken back before the thread ends; a stack in use by then stays mapped. The first returns the
 * stack, and the second leaves that in its place which is to be passed to the next call, of any
 * thread; NULL: none. If the program has set another stack, ours is kept and not unmapped: the
 * program may set it again later. */
void *signals_give_stack(void *kept);
void signals_take_stack(void **place);

#endif
