/* What the hardened preset promises to programs that make no mistake, under random calls by several
 * threads that free each other's blocks, and in children of fork:
 *
 *  - memory reads as zero when it is handed out, also what realloc adds, in place or not;
 *  - malloc_usable_size and malloc_object_size tell what was asked for, to the byte;
 *  - every free is taken that is of the right kind, and is told what is right;
 *  - alignments, contents.
 *
 * usage: hardened_promises CALLS THREADS SEED
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hakmem/hakmem.h>

extern void free_sized(void *block, size_t size);
extern void free_aligned_sized(void *block, size_t alignment, size_t size);
extern void *_Znwm(size_t size);
extern void *_Znam(size_t size);
extern void *_ZnwmSt11align_val_t(size_t size, size_t alignment);
extern void *_ZnamSt11align_val_t(size_t size, size_t alignment);
extern void _ZdlPv(void *block);
extern void _ZdlPvm(void *block, size_t size);
extern void _ZdaPv(void *block);
extern void _ZdaPvm(void *block, size_t size);
extern void _ZdlPvmSt11align_val_t(void *block, size_t size, size_t alignment);
extern void _ZdaPvmSt11align_val_t(void *block, size_t size, size_t alignment);
extern void _ZdaPvSt11align_val_t(void *block, size_t alignment);

enum { SLOTS = 512, FORKS_PER_CALLS = 20000 };

enum kind { MALLOC, ALIGNED, NEW, NEW_ARRAY, NEW_ALIGNED, NEW_ARRAY_ALIGNED, KINDS };

struct record {
    char *block;
    size_t size, alignment;
    enum kind kind;
    unsigned char fill;
};

/* Any thread takes what is there, and puts its own in its place. */
static struct record *slots[SLOTS];
static unsigned long calls = 200000, threads = 4, seed = 1;

#define REQUIRE(x)                                                                                 \
    do {                                                                                           \
        if (!(x))                                                                                  \
            fail(#x, __LINE__, record);                                                            \
    } while (0)

static _Noreturn void fail(const char *what, int line, const struct record *record)
{
    fprintf(
        stderr, "line %d: %s, of %p, %zu bytes, alignment %zu, kind %d, seed %lu\n", line, what,
        (void *)record->block, record->size, record->alignment, record->kind, seed);
    _exit(1);
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Most are short, some just beside the borders of tiers, few are big. */
static size_t random_size(uint64_t *state)
{
    static const size_t borders[] = {0,     16,    1016,   1024,    4096,   32760,
                                     32768, 65536, 131072, 1 << 20, 2 << 20};
    uint64_t bits = next_random(state);
    size_t count = sizeof borders / sizeof *borders;
    if (bits % 8 == 0) {
        size_t size = borders[(bits >> 8) % count] + (bits >> 16) % 19;
        return size >= 9 ? size - 9 : size;
    }
    unsigned shift = 3 + (bits >> 8) % (bits % 64 == 1 ? 20 : bits % 8 == 1 ? 14 : 8);
    return (bits >> 16) % ((size_t)1 << shift);
}

static bool is_all(const char *bytes, size_t size, unsigned char value)
{
    return size == 0 ||
           ((unsigned char)bytes[0] == value && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static void check_sizes(const struct record *record, uint64_t *state)
{
    size_t offset = record->size ? next_random(state) % record->size : 0;
    bool is_big = record->size > (size_t)1 << 20;
    size_t usable = malloc_usable_size(record->block);
    REQUIRE(usable == record->size || (is_big && usable > record->size));
    REQUIRE(hakmem_usable_size(record->block) == usable);
    if (!is_big) {
        REQUIRE(malloc_object_size(record->block + offset) == record->size - offset);
        REQUIRE(malloc_object_size_fast(record->block + offset) >= record->size - offset);
    }
}

static void make_block(struct record *record, uint64_t *state)
{
    uint64_t bits = next_random(state);
    record->size = random_size(state);
    record->kind = (enum kind)(bits % KINDS);
    record->alignment = (size_t)16 << (bits >> 8) % (bits % 32 == 0 ? 18 : 9);
    record->fill = (unsigned char)(bits >> 16 | 1);
    switch (record->kind) {
    case MALLOC:
        record->alignment = 16;
        record->block = bits >> 24 & 1 ? malloc(record->size) : calloc(1, record->size);
        break;
    case ALIGNED:
        record->block = aligned_alloc(record->alignment, record->size);
        break;
    case NEW:
        record->alignment = 16;
        record->block = _Znwm(record->size);
        break;
    case NEW_ARRAY:
        record->alignment = 16;
        record->block = _Znam(record->size);
        break;
    case NEW_ALIGNED:
        record->block = _ZnwmSt11align_val_t(record->size, record->alignment);
        break;
    case NEW_ARRAY_ALIGNED:
        record->block = _ZnamSt11align_val_t(record->size, record->alignment);
        break;
    case KINDS:
        break;
    }
    REQUIRE(record->block != NULL);
    REQUIRE((uintptr_t)record->block % record->alignment == 0);
    REQUIRE(is_all(record->block, record->size, 0));
    check_sizes(record, state);
    if (record->size)
        memset(record->block, record->fill, record->size);
}

static void free_block(struct record *record, uint64_t *state)
{
    bool told = next_random(state) & 1;
    REQUIRE(is_all(record->block, record->size, record->fill));
    switch (record->kind) {
    case MALLOC:
        told ? free_sized(record->block, record->size) : free(record->block);
        break;
    case ALIGNED:
        told ? free_aligned_sized(record->block, record->alignment, record->size)
             : free(record->block);
        break;
    case NEW:
        told ? _ZdlPvm(record->block, record->size) : _ZdlPv(record->block);
        break;
    case NEW_ARRAY:
        told ? _ZdaPvm(record->block, record->size) : _ZdaPv(record->block);
        break;
    case NEW_ALIGNED:
        _ZdlPvmSt11align_val_t(record->block, record->size, record->alignment);
        break;
    case NEW_ARRAY_ALIGNED:
        told ? _ZdaPvmSt11align_val_t(record->block, record->size, record->alignment)
             : _ZdaPvSt11align_val_t(record->block, record->alignment);
        break;
    case KINDS:
        break;
    }
    free(record);
}

static void resize_block(struct record *record, uint64_t *state)
{
    size_t before = record->size, size = random_size(state);
    if (next_random(state) & 1)
        size = before + size % 64 - (before > 64 ? 32 : 0);
    if (size == 0)
        size = 1;
    char *moved = realloc(record->block, size);
    REQUIRE(moved != NULL);
    record->block = moved;
    record->size = size;
    record->kind = MALLOC;
    record->alignment = 16;
    size_t kept = before < size ? before : size;
    REQUIRE(is_all(moved, kept, record->fill));
    REQUIRE(is_all(moved + kept, size - kept, 0));
    check_sizes(record, state);
    memset(moved, record->fill, size);
}

/* Puts the record where another one may be, and takes that. */
static struct record *exchange(struct record *record, uint64_t *state)
{
    return __atomic_exchange_n(&slots[next_random(state) % SLOTS], record, __ATOMIC_ACQ_REL);
}

/* A child has what its parent had, but for what other threads were about to change. */
static void work_in_child(uint64_t *state)
{
    pid_t child = fork();
    int status = -1;
    if (child == 0) {
        alarm(250); /* of 300 that CTest waits */
        for (unsigned i = 0; i < SLOTS; i++) {
            struct record *record = exchange(NULL, state);
            if (record)
                free_block(record, state);
            record = calloc(1, sizeof *record);
            make_block(record, state);
            free_block(record, state);
        }
        _exit(0);
    }
    if (child < 0)
        return;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (status != 0) {
        fprintf(stderr, "a child of fork ended with status %d, seed %lu\n", status, seed);
        _exit(1);
    }
}

static void *work(void *argument)
{
    uint64_t state = seed * 1000 + (uintptr_t)argument;
    for (unsigned long i = 0; i < calls; i++) {
        struct record *record = calloc(1, sizeof *record);
        make_block(record, &state);
        record = exchange(record, &state);
        if (record && record->kind <= ALIGNED && next_random(&state) % 4 == 0) {
            resize_block(record, &state);
            record = exchange(record, &state);
        }
        if (record)
            free_block(record, &state);
        if (i % FORKS_PER_CALLS == FORKS_PER_CALLS / 2)
            work_in_child(&state);
        if (next_random(&state) % 5000 == 0)
            hakmem_thread_flush();
        if (next_random(&state) % 20000 == 0)
            (void)hakmem_purge();
    }
    return NULL;
}

int main(int count, char **arguments)
{
    enum { THREADS_MAX = 64 };
    pthread_t started[THREADS_MAX];
    long hardened = 0;
    uint64_t state = 0;
    if (count > 1)
        calls = strtoul(arguments[1], NULL, 10);
    if (count > 2)
        threads = strtoul(arguments[2], NULL, 10);
    if (count > 3)
        seed = strtoul(arguments[3], NULL, 10);
    if (threads == 0 || threads > THREADS_MAX || hakmem_option_get("hardened", &hardened) != 0 ||
        !hardened) {
        fprintf(stderr, "usage: HAKMEM_PRESET=hardened %s [CALLS [THREADS [SEED]]]\n", *arguments);
        return 2;
    }
    /* Again and again, so that threads end and others take their place. */
    for (unsigned round = 0; round < 4; round++) {
        for (uintptr_t i = 0; i < threads; i++)
            if (pthread_create(&started[i], NULL, work, (void *)(round * threads + i)) != 0)
                return 2;
        for (unsigned long i = 0; i < threads; i++)
            pthread_join(started[i], NULL);
    }
    for (unsigned i = 0; i < SLOTS; i++)
        if (slots[i])
            free_block(slots[i], &state);
    printf("%lu calls by %lu threads, four times\n", calls, threads);
    return 0;
}
