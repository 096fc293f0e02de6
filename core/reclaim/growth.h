/* Growth is paid for: free memory goes before more is mapped, and for what is taken. The functions
 * that layers below call are declared in base/pressure.h. */
#ifndef RECLAIM_GROWTH_H
#define RECLAIM_GROWTH_H

/* Called when a round of the engine begins: what is resident now is the height from which on free
 * memory goes for what is taken. */
void growth_begin_round(void);

#endif
