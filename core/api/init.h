/* The part of the library's start that tests have to repeat. */
#ifndef API_INIT_H
#define API_INIT_H

/* Applies options to the heap: shards, and the observers of trace/. For the constructor; to be
 * called outside of allocations. */
void init_heap(void);

#endif
