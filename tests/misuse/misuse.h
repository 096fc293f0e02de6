/* What the misuse programs share: how each tells the runner which pointer it is about to misuse,
 * and how far it came.
 *
 * Each program is one file below this directory that defines misuse(). The comment at its top says
 * what the mistake is and what must come of it, in the form that run_misuse.py explains. The
 * program is started as `program SIZE [staged]` and makes the mistake with a block of SIZE bytes.
 */
#ifndef MISUSE_H
#define MISUSE_H

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <hakmem/hakmem.h>

/* The largest block that lies in a slab and passes through the threads' caches. */
#define SLAB_BLOCK_MAX ((size_t)32 << 10)

/* The program itself. */
void misuse(size_t size);

/* Says that `bad` will be misused; `base` is the block that it lies in, or NULL. Comes before the
 * mistake. */
void announce(const void *bad, const void *base);

/* Says that the call with the mistake has returned. In a staged run the thread then flushes its
 * cache, and everything is drained, so that the runner sees which of these finds the mistake. */
void survived(void);

/* Says what came of reading what is not the program's to read. */
void has_read(bool zero);

/* Ends the program where a case has no meaning: realloc did not move the block, for instance. */
_Noreturn void not_applicable(void);

/* Ends the program because something besides the mistake is wrong. */
_Noreturn void broken(const char *what);

/* Hides where a pointer comes from, so that the compiler cannot reason about the mistake. */
static inline void *hide(const void *pointer)
{
    const void *volatile hidden = pointer;
    return (void *)hidden;
}

/* A block, or the end of the program. */
static inline void *need(void *block)
{
    if (!block)
        broken("out of memory");
    return hide(block);
}

/* A block to be misused; announces it. Some others are kept, so that the thread's cache is not full
 * and takes the blocks freed next. A full one is looked through, which finds mistakes early. */
void *new_victim(size_t size);

/* The same, freed, and all free memory has gone back to the system. */
void *new_purged_victim(size_t size);

/* The mistake, where it is a free. */
void free_wrongly(const void *pointer);

/* Announces a pointer that lies in no block, and frees it. */
void free_foreign(const void *pointer);

/* Announces the pointer `offset` bytes into a new block, and frees it. */
void free_inside(size_t size, size_t offset);

/* The address behind a block, where nobody has one. Behind a big block the heap may happen to
 * begin, with a block of the dynamic linker's: then the case has no meaning. */
char *behind(char *block);

/* How many blocks of the size it takes to be sure that a thread's cache was flushed. */
size_t many(size_t size);

/* Runs the function in a new thread and waits for its end. */
void run_in_thread(void *(*body)(void *), const void *argument);

/* A thread that lives from helper_start to helper_end and makes no call into the library but the
 * frees that it is asked for. Starting one allocates, so that comes before the first free. */
struct helper {
    pthread_t thread;
    sem_t asked, done;
    void *block;
    bool ends;
};

void helper_start(struct helper *helper);
void helper_free(struct helper *helper, const void *block);
void helper_end(struct helper *helper);

/* Ends the program unless the next block of the size is this one, which was just freed. */
void check_freed(const void *block, size_t size);

/* A block with neighbours of its size on both sides, at least 2 MiB of them: what is written out of
 * its bounds hits these. Announced. */
char *surrounded(size_t size);

/* Frees them all and makes some ordinary calls, which do not mind what was written. */
void free_surrounded(void);

/* How many blocks of the size a group has, so that memory does not run out. */
enum { GROUP_MAX = 300 };
size_t group_for(size_t size);

/* Frees an array of blocks up to the first NULL; returns NULL. */
void *free_group(void *blocks);

void fill_words(void *block, size_t size, uintptr_t word);

/* The words that a freed slab block of this size begins with; returns how many. A program that
 * copies uninitialised memory brings what hakmem writes into freed blocks into live ones. */
enum { WORDS_MAX = 8 };
size_t words_of_freed(size_t size, uintptr_t *words);

/* The C library no longer declares it, but old programs call it. */
extern void cfree(void *block);

/* Declared by C libraries that are newer than some that hakmem runs on. */
extern void free_sized(void *block, size_t size);
extern void free_aligned_sized(void *block, size_t alignment, size_t size);

/* C++'s operators, by their mangled names: delete, sized, aligned, and both; delete[], sized; new,
 * aligned; new[]. */
extern void _ZdlPv(void *block);
extern void _ZdlPvm(void *block, size_t size);
extern void _ZdlPvSt11align_val_t(void *block, size_t alignment);
extern void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t alignment);
extern void _ZdaPv(void *block);
extern void _ZdaPvm(void *block, size_t size);
extern void *_Znwm(size_t size);
extern void *_ZnwmSt11align_val_t(size_t size, size_t alignment);
extern void *_Znam(size_t size);

#endif
