/* The start of the library, as far as tests have to begin anew with what a process begins with. */
#ifndef API_INIT_H
#define API_INIT_H

/* What the options ask of the heap, once they were read: shards, the hardened preset, samples. By
 * the constructor. To be called outside of allocations. */
void init_heap(void);

#endif
