/* The wall to hardened/: the calls by which the hardened library differs from the default one.
 *
 * libhakmem-hardened.so is built from the same sources and those of hardened/, with
 * HAKMEM_HARDENED=1. There malloc and free are those of hardened/front.c and realloc that of
 * hardened/resize.c, in place of alloc.c, long.c, resize.c and object.c of api/. Below these the
 * allocator is the same, except for some calls, which are nothing in the default library, and where
 * it asks HARDENED, a constant. Nothing of hardened/ is in the default library, and no file but
 * this one names that folder.
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

/* The kind of function that makes or frees a block. For a free only: FORM_ANY, of unknown kind;
 * FORM_ALIGNED, a bit: it was told an alignment. The default library ignores it. */
enum form { FORM_MALLOC, FORM_NEW, FORM_NEW_ARRAY, FORM_ANY, FORM_ALIGNED };

/* A zeroed block of at least `size` bytes at a multiple of `alignment`, a power of two, made by
 * that kind of function. NULL and ENOMEM when there is no memory. */
void *hardened_alloc(size_t size, size_t alignment, enum form form);

/* Frees a block of any sort that a function of that kind got, or NULL. */
void hardened_free(void *pointer, enum form form);

/* To be called before a block is freed by a function of that kind that is told its size or
 * alignment. Aborts, naming `call`, if the block was requested with another size (SIZE_MAX: not
 * told) or alignment (0: not told). Free itself checks whether the block is live. */
SLOW_PATH void hardened_expect(
    const void *block, size_t size, size_t alignment, enum form form, const char *call);

/* ---- Start and end --------------------------------------------------------------------------- */

/* To be called once, before the first memory is mapped. */
void hardened_start(void);

/* To be called in a child of fork, before any thread of it takes a lock: it shall not choose the
 * places that its parent and the parent's other children choose. */
void hardened_begin_process(void);

/* To be called at the end of the program: checks free blocks. */
void hardened_stop(void);

/* Checks the blocks in the calling thread's hold, and sends them home. */
void hardened_flush(void);

/* hardened_flush, and the end of all waiting of freed blocks, for a caller without memory. To be
 * called without locks. */
void hardened_release(void);

/* The calling thread leaves its heap. To be called without locks. */
void hardened_leave_heap(void);

/* Gives back the pages of the hold of a heap without an owner. */
void hardened_make_bare(struct heap *heap);

/* Add and zero the counts of the heap's hold. */
void hardened_add_counts(struct heap_counts *sum, const struct heap *heap, unsigned size_class);
void hardened_clear_counts(struct heap *heap, unsigned size_class);

/* Bytes that the heap has mapped beside its area. */
size_t hardened_heap_bytes(const struct heap *heap);

/* ---- Slabs ----------------------------------------------------------------------------------- */

/* Blocks of a slab of the class, and the bytes of its record beside a bit for each. */
unsigned hardened_slab_blocks(unsigned size_class);
size_t hardened_record_bytes(unsigned blocks);

/* Opens a new slab, which then reads as zero; false: the system refuses. */
bool hardened_open_slab(struct slab *slab);

/* Closes the slab's open pages, and gives their memory back; false: they are still open. */
bool hardened_close_slab(const struct slab *slab);

/* As slab_take, but takes blocks at random. The bin's lock. */
unsigned hardened_take(struct slab *slab, void **blocks, unsigned count);

/* Aborts if it can say why the address is no start of a block; else returns. */
void hardened_refuse(const struct slab *slab, const void *address, const char *call);

/* The address of a pointer of the program, without its tag. */
void *hardened_address(const void *pointer);

/* Between a call with true and one with false, this thread may read blocks of others. */
void hardened_look_anywhere(bool begin);

/* Whether the block of that index is free; the sample of the slab's only block, or NULL. Any
 * thread. */
bool hardened_is_free(const struct slab *slab, unsigned index);
const void *hardened_sample(const struct slab *slab);

/* ---- Pages ----------------------------------------------------------------------------------- */

/* Zeroed memory for the allocator's records between two closed pages, `anywhere` or near others;
 * NULL: there is none. */
void *hardened_map_records(size_t size, bool anywhere);

/* The place for the next superslab, of `superslabs` so far; NULL: anywhere. */
char *hardened_place(size_t superslabs);

/* Closes all of a new superslab; notes that it was unmapped. */
void hardened_start_superslab(struct superslab *superslab);
void hardened_end_superslab(const struct superslab *superslab);

/* The unit from which a search for a run begins. The page heap's lock. */
unsigned hardened_first_unit(void);

/* Unmaps mappings that the system refused to unmap before. */
void hardened_unmap_refused(void);

/* ---- For observers and tests ----------------------------------------------------------------- */

/* The layout for `hakmem inspect` (layout.c): how many numbers follow, none in the default library,
 * and these. */
extern const uint32_t hardened_layout[];

/* Debug walkers over one slab, and over all waiting blocks. */
void hardened_check_slab(const struct slab *slab);
void hardened_check(void);

/* ---- In the default library ------------------------------------------------------------------ */

/* What stands there for these calls, which need not be asked for: nothing, or what is so without
 * hardened/. */
#if !HAKMEM_HARDENED
#define hardened_start() ((void)0)
#define hardened_begin_process() ((void)0)
#define hardened_stop() ((void)0)
#define hardened_flush() ((void)0)
#define hardened_release() ((void)0)
#define hardened_leave_heap() ((void)0)
#define hardened_make_bare(heap) ((void)0)
#define hardened_add_counts(sum, heap, size_class) ((void)0)
#define hardened_clear_counts(heap, size_class) ((void)0)
#define hardened_heap_bytes(heap) ((size_t)0)
#define hardened_close_slab(slab) false
#define hardened_refuse(slab, address, call) ((void)0)
#define hardened_address(pointer) (pointer)
#define hardened_look_anywhere(begin) ((void)0)
#define hardened_place(superslabs) NULL
#define hardened_start_superslab(superslab) ((void)0)
#define hardened_end_superslab(superslab) ((void)0)
#define hardened_first_unit() 0u
#define hardened_unmap_refused() ((void)0)
#define hardened_check_slab(slab) ((void)0)
#define hardened_check() ((void)0)
#endif

#endif
