/* The walkers over structures of slab/ and thread/: they assert that every list, count and bound is
 * what the bitmaps and the blocks say. For tests: no product has them, since nothing that a program
 * can reach calls them, and without HAKMEM_DEBUG they find nothing.
 */
#ifndef CHECKS_CHECKS_H
#define CHECKS_CHECKS_H

struct heap;
struct slab;

void slab_check(const struct slab *slab);

/* All bins, with their slabs; all transfer caches. */
void bin_check_all(void);
void transfer_check_all(void);

/* The heap's magazines and slot ranges; the heaps that no thread owns. */
void heap_check(struct heap *heap);
void heap_check_pool(void);

#endif
