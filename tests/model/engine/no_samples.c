/* Nothing is sampled in a model: in its place stands what is never called. */
#include <stdlib.h>

#include "trace/attach.h"
#include "trace/sample.h"

struct attach attachment;

void *sample_replace(
    void *block, size_t size, size_t alignment, bool zero, const struct unwind_start *start)
{
    (void)block, (void)size, (void)alignment, (void)zero, (void)start;
    abort();
}

struct sample *sample_decide(size_t size, unsigned size_class, const struct unwind_start *start)
{
    (void)size, (void)size_class, (void)start;
    abort();
}

void sample_begin(struct sample *sample, void *block, size_t usable)
{
    (void)sample, (void)block, (void)usable;
    abort();
}

void sample_drop(struct sample *sample)
{
    (void)sample;
    abort();
}

void sample_big(struct big *big, size_t size, const struct unwind_start *start)
{
    (void)big, (void)size, (void)start;
    abort();
}

struct sample *sample_of(struct slab *slab, const void *block, const char *call)
{
    (void)slab, (void)block, (void)call;
    abort();
}

struct sample *sample_free(struct heap *heap, struct slab *slab, void *block)
{
    (void)heap, (void)slab, (void)block;
    abort();
}

struct sample *sample_free_big(struct big *big, const void *block)
{
    (void)big, (void)block;
    return NULL;
}

void sample_bury(struct sample *sample)
{
    (void)sample;
    abort();
}

void sample_resize(struct sample *sample, void *before, void *block, size_t size)
{
    (void)sample, (void)before, (void)block, (void)size;
    abort();
}

void sample_moves(bool moves)
{
    (void)moves;
}

uintptr_t guard_start;
size_t guard_bytes;

struct guard *guard_of(const void *address)
{
    (void)address;
    abort();
}

size_t guard_size(const struct guard *guard, const void *block, const char *call)
{
    (void)guard, (void)block, (void)call;
    abort();
}

struct site *sample_site(const struct unwind_start *start)
{
    (void)start;
    abort();
}

struct sample *sample_free_guarded(
    struct heap *heap, struct guard *guard, void *block, const struct site *freed)
{
    (void)heap, (void)guard, (void)block, (void)freed;
    abort();
}

bool sample_is_observed;

void sample_look_around(struct heap *heap)
{
    (void)heap;
}
