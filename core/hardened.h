/* The wall to hardened/: everything that the hardened library does and the default one does not.
 *
 * libhakmem-hardened.so is built from the same sources and those of hardened/, with
 * HAKMEM_HARDENED=1. There malloc and free are those of hardened/front.c and realloc that of
 * hardened/resize.c, in place of alloc.c, long.c, resize.c and object.c of api/. Below these the
 * allocator is the same, but at the places that ask HARDENED. It is a constant: nothing of
 * hardened/ is in the default library, and no file but this one names that folder.
 */
#ifndef HARDENED_H
#define HARDENED_H

#include "base/macros.h"

enum { HARDENED = HAKMEM_HARDENED };

struct heap;
struct heap_counts;
struct slab;
struct superslab;

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* By which kind of function a block is made or freed. Only of a free: FORM_ANY, one that cannot
 * tell; FORM_ALIGNED, a bit, one that was told an alignment. The default library does not care. */
enum form { FORM_MALLOC, FORM_NEW, FORM_NEW_ARRAY, FORM_ANY, FORM_ALIGNED };

/* A zeroed block of at least `size` bytes at a multiple of `alignment`, a power of two, made by
 * that kind of function. NULL and ENOMEM when there is no memory. */
void *hardened_alloc(size_t size, size_t alignment, enum form form);

/* Frees a block that a function of that kind got, whatever it is, NULL too. */
void hardened_free(void *pointer, enum form form);

/* To be called before a block is freed by a function that is told its size or alignment. Aborts,
 * naming `call`, if the block was requested with another size (SIZE_MAX: not told) or alignment (0:
 * not told). Free itself finds out whether the block is live. */
SLOW_PATH void hardened_expect(const void *block, size_t size, size_t alignment, const char *call);

/* ---- Start and end --------------------------------------------------------------------------- */

/* Before the first memory is mapped, once. */
void hardened_start(void);

/* At the end of the program: looks at all free blocks that wait. */
void hardened_stop(void);

/* Checks the blocks in the calling thread's hold, and sends them home. */
void hardened_flush(void);

/* The same, and ends all waiting of freed blocks, for a caller without memory. To be called without
 * locks. */
void hardened_release(void);

/* The calling thread leaves its heap. To be called without locks. */
void hardened_leave_heap(void);

/* Gives back the pages of the hold of a heap that no thread owns. */
void hardened_make_bare(struct heap *heap);

/* Adds the heap's counts beside those of its magazines, and sets them to zero. */
void hardened_add_counts(struct heap_counts *sum, const struct heap *heap, unsigned size_class);
void hardened_clear_counts(struct heap *heap, unsigned size_class);

/* Bytes that the heap has mapped beside its area. */
size_t hardened_heap_bytes(const struct heap *heap);

/* ---- Slabs ----------------------------------------------------------------------------------- */

/* Blocks of a slab of the class, and the bytes of its record beside a bit for each. */
unsigned hardened_slab_blocks(unsigned size_class);
size_t hardened_record_bytes(unsigned blocks);

/* Opens a new slab, of which all then reads as zero; false: the system refuses. */
bool hardened_open_slab(struct slab *slab);

/* Closes the slab's open pages, and gives their memory back; false: they are still open. */
bool hardened_close_slab(const struct slab *slab);

/* As slab_take, but any free blocks. The bin's lock. */
unsigned hardened_take(struct slab *slab, void **blocks, unsigned count);

/* Why the address is no start of a block; returns if there is no more to say than of any slab. */
void hardened_refuse(const struct slab *slab, const void *address, const char *call);

/* The address that a pointer of the program leads to. */
void *hardened_address(const void *pointer);

/* From now on, until the opposite, this thread may look at any block that is not its own. */
void hardened_look_anywhere(bool begin);

/* Whether the block of that index is free, and the sample that the slab's only block is, or NULL.
 * Any thread. */
bool hardened_is_free(const struct slab *slab, unsigned index);
const void *hardened_sample(const struct slab *slab);

/* ---- Pages ----------------------------------------------------------------------------------- */

/* Zeroed memory for the allocator's records between two closed pages, `anywhere` or near others;
 * NULL: there is none. */
void *hardened_map_records(size_t size, bool anywhere);

/* The place for the next superslab, of `superslabs` so far; NULL: anywhere. */
char *hardened_place(size_t superslabs);

/* Closes all of a new superslab; and tells that it is gone. */
void hardened_start_superslab(struct superslab *superslab);
void hardened_end_superslab(const struct superslab *superslab);

/* From which unit on a run is looked for. The page heap's lock. */
unsigned hardened_first_unit(void);

/* Unmaps mappings that the system refused to unmap before. */
void hardened_unmap_refused(void);

/* ---- For observers and tests ----------------------------------------------------------------- */

/* The layout for `hakmem inspect` (layout.c): how many numbers follow, none in the default library,
 * and these. */
extern const uint32_t hardened_layout[];

/* Debug walkers, over one slab and over all that waits. */
void hardened_check_slab(const struct slab *slab);
void hardened_check(void);

#endif
