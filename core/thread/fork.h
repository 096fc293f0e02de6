/* Fork: the child gets consistent structures, open locks, and the heaps of threads it lacks. */
#ifndef THREAD_FORK_H
#define THREAD_FORK_H

/* Registers the handlers with the C library; called once, from the library's constructor. */
void fork_init(void);

#endif
