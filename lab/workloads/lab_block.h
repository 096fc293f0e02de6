/* The calls of the allocator that workloads make, and what they write into blocks. Part of lab.h.
 *
 * All of it is inlined: without --latency a call costs one comparison more than a bare one.
 *
 * Thread rule: as a recorder, a block belongs to one thread at a time. */
#ifndef LAB_BLOCK_H
#define LAB_BLOCK_H

#include "lab.h"

/* ---- Calls of the allocator ------------------------------------------------------------------ */

/* Each of these calls the function it is named after, and ends the program when that fails. With
 * --latency the call is timed. They do not count operations. */

void *lab_timed_malloc(struct lab_latency *latency, size_t size);
void *lab_timed_calloc(struct lab_latency *latency, size_t count, size_t size);
void *lab_timed_realloc(struct lab_latency *latency, void *block, size_t size);
void *lab_timed_aligned_alloc(struct lab_latency *latency, size_t alignment, size_t size);
int lab_timed_posix_memalign(
    struct lab_latency *latency, void **block, size_t alignment, size_t size);
void lab_timed_free(struct lab_latency *latency, void *block);
void *lab_timed_new(struct lab_latency *latency, size_t size);
void lab_timed_delete(struct lab_latency *latency, void *block, size_t size);

/* C++'s operator new, and the operator delete that is told the size. */
struct lab_operators {
    void *(*allocate)(size_t size);
    void (*release)(void *block, size_t size);
};

/* Constant from lab_operators_open() on, which has to precede lab_new() and lab_delete(): it loads
 * the C++ library, so that the other workloads do without. */
extern struct lab_operators lab_operators;
void lab_operators_open(void);

/* Ends the program: `call` did not give `size` bytes. */
__attribute__((noreturn, cold)) void lab_out_of_memory(const char *call, size_t size);

static inline void *lab_malloc(struct lab_recorder *recorder, size_t size)
{
    void *block =
        LAB_LIKELY(!recorder->latency) ? malloc(size) : lab_timed_malloc(recorder->latency, size);
    if (LAB_UNLIKELY(!block)) {
        lab_out_of_memory("malloc", size);
    }
    return block;
}

static inline void *lab_calloc(struct lab_recorder *recorder, size_t count, size_t size)
{
    void *block = LAB_LIKELY(!recorder->latency) ? calloc(count, size)
                                                 : lab_timed_calloc(recorder->latency, count, size);
    if (LAB_UNLIKELY(!block)) {
        lab_out_of_memory("calloc", count * size);
    }
    return block;
}

static inline void *lab_realloc(struct lab_recorder *recorder, void *old, size_t size)
{
    void *block = LAB_LIKELY(!recorder->latency) ? realloc(old, size)
                                                 : lab_timed_realloc(recorder->latency, old, size);
    if (LAB_UNLIKELY(!block)) {
        lab_out_of_memory("realloc", size);
    }
    return block;
}

/* `size` is a multiple of `alignment`, as the C standard had it first. */
static inline void *lab_aligned_alloc(struct lab_recorder *recorder, size_t alignment, size_t size)
{
    void *block = LAB_LIKELY(!recorder->latency)
                      ? aligned_alloc(alignment, size)
                      : lab_timed_aligned_alloc(recorder->latency, alignment, size);
    if (LAB_UNLIKELY(!block)) {
        lab_out_of_memory("aligned_alloc", size);
    }
    return block;
}

static inline void *lab_posix_memalign(struct lab_recorder *recorder, size_t alignment, size_t size)
{
    void *block = NULL;
    int error = LAB_LIKELY(!recorder->latency)
                    ? posix_memalign(&block, alignment, size)
                    : lab_timed_posix_memalign(recorder->latency, &block, alignment, size);
    if (LAB_UNLIKELY(error || !block)) {
        lab_out_of_memory("posix_memalign", size);
    }
    return block;
}

static inline void lab_free(struct lab_recorder *recorder, void *block)
{
    if (LAB_LIKELY(!recorder->latency)) {
        free(block);
    } else {
        lab_timed_free(recorder->latency, block);
    }
}

static inline void *lab_new(struct lab_recorder *recorder, size_t size)
{
    void *block = LAB_LIKELY(!recorder->latency) ? lab_operators.allocate(size)
                                                 : lab_timed_new(recorder->latency, size);
    if (LAB_UNLIKELY(!block)) {
        lab_out_of_memory("operator new", size);
    }
    return block;
}

static inline void lab_delete(struct lab_recorder *recorder, void *block, size_t size)
{
    if (LAB_LIKELY(!recorder->latency)) {
        lab_operators.release(block, size);
    } else {
        lab_timed_delete(recorder->latency, block, size);
    }
}

/* ---- Contents of blocks ---------------------------------------------------------------------- */

/* Ends the program: a block of `size` bytes does not hold what was written at `offset`. */
__attribute__((noreturn, cold)) void lab_corrupt(
    size_t size, size_t offset, uint32_t expected, uint32_t found);

static inline void lab_word_write(void *block, size_t offset, uint32_t word)
{
    memcpy((char *)block + offset, &word, sizeof word);
}

static inline uint32_t lab_word_read(const void *block, size_t offset)
{
    uint32_t word;
    memcpy(&word, (const char *)block + offset, sizeof word);
    return word;
}

static inline uint32_t lab_word_expect(
    const void *block, size_t size, size_t offset, uint32_t expected)
{
    uint32_t word = lab_word_read(block, offset);
    if (LAB_UNLIKELY(word != expected)) {
        lab_corrupt(size, offset, expected, word);
    }
    return word;
}

/* Writes the first and the last word of a block of size >= LAB_SIZE_LEAST. */
static inline void lab_mark(void *block, size_t size, uint32_t tag)
{
    lab_word_write(block, 0, tag);
    lab_word_write(block, size - 4, tag ^ (uint32_t)size);
}

/* Checks what lab_mark() wrote and adds it to the checksum. */
static inline void lab_verify(
    struct lab_recorder *recorder, const void *block, size_t size, uint32_t tag)
{
    uint64_t first = lab_word_expect(block, size, 0, tag);
    uint64_t last = lab_word_expect(block, size, size - 4, tag ^ (uint32_t)size);
    recorder->checksum += first << 32 | last;
}

/* The distance between the words that lab_mark_pages() writes: the smallest page there is. */
#define LAB_PAGE 4096

/* The same with one word a page besides, for blocks whose pages are to be there. */
static inline void lab_mark_pages(void *block, size_t size, uint32_t tag)
{
    for (size_t offset = LAB_PAGE; offset + 8 <= size; offset += LAB_PAGE) {
        lab_word_write(block, offset, tag + (uint32_t)offset);
    }
    lab_mark(block, size, tag);
}

static inline void lab_verify_pages(
    struct lab_recorder *recorder, const void *block, size_t size, uint32_t tag)
{
    for (size_t offset = LAB_PAGE; offset + 8 <= size; offset += LAB_PAGE) {
        recorder->checksum += lab_word_expect(block, size, offset, tag + (uint32_t)offset);
    }
    lab_verify(recorder, block, size, tag);
}

/* A live block with what is needed to check it. Zeroed: none. */
struct lab_block {
    void *address;
    uint32_t size;
    uint32_t tag;
};

/* malloc and mark. Counts as one operation, which the caller adds. */
static inline void lab_block_allocate(
    struct lab_recorder *recorder, struct lab_block *block, uint32_t size, uint32_t tag)
{
    block->address = lab_malloc(recorder, size);
    block->size = size;
    block->tag = tag;
    lab_mark(block->address, size, tag);
}

/* Verify and free. Counts as one operation; leaves `block` as it is, for reuse. */
static inline void lab_block_free(struct lab_recorder *recorder, const struct lab_block *block)
{
    lab_verify(recorder, block->address, block->size, block->tag);
    lab_free(recorder, block->address);
}

/* The same for blocks of which the first eight bytes alone are touched. */
static inline void lab_block_allocate_first(
    struct lab_recorder *recorder, struct lab_block *block, uint32_t size, uint32_t tag)
{
    block->address = lab_malloc(recorder, size);
    block->size = size;
    block->tag = tag;
    lab_mark(block->address, LAB_SIZE_LEAST, tag);
}

static inline void lab_block_free_first(
    struct lab_recorder *recorder, const struct lab_block *block)
{
    lab_verify(recorder, block->address, LAB_SIZE_LEAST, block->tag);
    lab_free(recorder, block->address);
}

/* The same for blocks whose pages are to be there. */
static inline void lab_block_allocate_pages(
    struct lab_recorder *recorder, struct lab_block *block, uint32_t size, uint32_t tag)
{
    block->address = lab_malloc(recorder, size);
    block->size = size;
    block->tag = tag;
    lab_mark_pages(block->address, size, tag);
}

static inline void lab_block_free_pages(
    struct lab_recorder *recorder, const struct lab_block *block)
{
    lab_verify_pages(recorder, block->address, block->size, block->tag);
    lab_free(recorder, block->address);
}

#endif
