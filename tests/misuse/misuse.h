/* The table of mistakes: how a case is written down, and what cases share.
 *
 * A case is a mistake with a block of `size` bytes. Each begins with CASE, or with one of the short
 * forms below it, in a file beside this one. The comment before that says in its first sentences
 * what the mistake is, and in the lines that follow what must come of it, in the form that
 * run_misuse.py explains. `misuse FOLDER/NAME SIZE [staged]` makes the mistake.
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

#define MIB ((size_t)1 << 20)

struct misuse {
    const char *name;
    void (*make)(size_t size);
};

/* CASE(CHAPTER, NAME) { ... }: the function that makes the mistake, and its row of the table. */
#define CASE(chapter, name)                                                                        \
    static void chapter##_##name(size_t size);                                                     \
    static const struct misuse chapter##_##name##_row                                              \
        __attribute__((section("misuses"), used)) = {#chapter "/" #name, chapter##_##name};        \
    static void chapter##_##name(size_t size __attribute__((unused)))

/* The mistake is the last of the expressions, made with `block`. */
#define MISTAKE(chapter, name, made, ...)                                                          \
    CASE(chapter, name)                                                                            \
    {                                                                                              \
        void *volatile block = made;                                                               \
        (void)(__VA_ARGS__);                                                                       \
        survived();                                                                                \
    }

/* The same, and where the mistake does not end the program, it has freed the block. */
#define FREED(chapter, name, made, ...)                                                            \
    CASE(chapter, name)                                                                            \
    {                                                                                              \
        void *block = made;                                                                        \
        (void)(__VA_ARGS__);                                                                       \
        survived();                                                                                \
        check_freed(block, size);                                                                  \
    }

/* The same with a block that has neighbours: what was written over shows when they are freed. */
#define SURROUNDED(chapter, name, ...)                                                             \
    CASE(chapter, name)                                                                            \
    {                                                                                              \
        char *block = surrounded(size);                                                            \
        (void)(__VA_ARGS__);                                                                       \
        survived();                                                                                \
        free_surrounded();                                                                         \
    }

/* The same with a pointer that lies in no block, `stray`. */
#define STRAY(chapter, name, pointer, ...)                                                         \
    CASE(chapter, name)                                                                            \
    {                                                                                              \
        char *volatile stray = (char *)(pointer);                                                  \
        announce(stray, NULL);                                                                     \
        (void)(__VA_ARGS__);                                                                       \
        survived();                                                                                \
    }

/* The same with the pointer `inside`, that many bytes into a block. */
#define INSIDE(chapter, name, offset, ...)                                                         \
    CASE(chapter, name)                                                                            \
    {                                                                                              \
        char *block = need(malloc(size));                                                          \
        char *volatile inside = block + (offset);                                                  \
        announce(inside, block);                                                                   \
        (void)(__VA_ARGS__);                                                                       \
        survived();                                                                                \
    }

/* Of the cases whose names end in `_way`: whether memory is written and read by memcpy. Of those
 * with `_n` before that: how far out of bounds. */
extern bool by_memcpy;
extern size_t distance;

/* A variable of the program. */
extern char storage[64];

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

/* Writes bytes, of which none is zero; reads bytes, and says whether all are zero. */
void write_bytes(void *where, size_t count);
void read_bytes(const void *where, size_t count);

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

/* The block, announced. */
void *announced(void *block);

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

/* For that: each frees the pointer. */
void *thread_frees(void *block);
void *thread_frees_wrongly(void *block);
void *thread_frees_foreign(void *pointer);

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

/* Fills a block with a word, a long one at both ends. */
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
