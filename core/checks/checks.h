/* The walkers over structures of map/, span/, slab/ and thread/: they assert that every list, count
 * and bound agrees with the bitmaps and the blocks. For tests: no product has them, and without
 * HAKMEM_DEBUG they find nothing. */
#ifndef CHECKS_CHECKS_H
#define CHECKS_CHECKS_H

struct heap;
struct slab;
struct superslab;

/* Records; the page map, while no thread registers a region; all superslabs; all mappings of big
 * blocks. */
void metadata_check(void);
void page_map_check(void);
void superslab_check(const struct superslab *superslab);
void page_heap_check(void);
void big_cache_check(void);

void slab_check(const struct slab *slab);

/* All bins, with their slabs; all transfer caches. */
void bin_check_all(void);
void transfer_check_all(void);

/* All scopes. */
void scope_check_all(void);

/* The heap's magazines and slot ranges; the heaps without an owner. */
void heap_check(struct heap *heap);
void heap_check_pool(void);

#endif
