/* Owns the program of the differential test: a seeded random sequence of calls to malloc and its
 * family, and one line of output for each call that says what a caller can tell of the answer.
 *
 * Run twice with the same seed, once on the C library's malloc and once on hakmem, the lines must
 * be the same. What may differ between two good allocators is left out: addresses, usable sizes,
 * and whether a size between the machine's memory and its address space can be reserved. The
 * sequence of calls never depends on an answer, so that a difference does not bring many others.
 *
 * usage: differential_calls SEED CALLS
 */
#define _GNU_SOURCE 1

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 512, HEAD_BYTES = 256, TAIL_BYTES = 64, ERRNO_MARK = 4242 };

/* A block that the sequence holds. `size` is what was asked for. */
struct slot {
    unsigned char *block;
    size_t size;
};

static struct slot slots[SLOTS];
static uint64_t random_state;
static uint64_t call_number;

/* Output is collected here, because stdio would allocate in the middle of the sequence. */
static char output[1 << 16];
static size_t output_length;

static void flush_output(void)
{
    size_t done = 0;
    while (done < output_length) {
        ssize_t written = write(STDOUT_FILENO, output + done, output_length - done);
        if (written <= 0) {
            _exit(3);
        }
        done += (size_t)written;
    }
    output_length = 0;
}

static const char *error_name(int error)
{
    static char other[16];
    switch (error) {
    case ERRNO_MARK:
        return "same";
    case 0:
        return "0";
    case ENOMEM:
        return "ENOMEM";
    case EINVAL:
        return "EINVAL";
    default:
        snprintf(other, sizeof(other), "%d", error);
        return other;
    }
}

/* One line: the call, and what came of it. */
static void report(const char *call, const char *answer)
{
    if (output_length + 512 > sizeof(output)) {
        flush_output();
    }
    output_length += (size_t)snprintf(
        output + output_length, 512, "%llu %s | %s\n", (unsigned long long)call_number++, call,
        answer);
}

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 0x2545f4914f6cdd1du;
}

static size_t random_below(size_t limit)
{
    return (size_t)((next_random() >> 11) % limit);
}

static size_t random_size(void)
{
    static const size_t edges[] = {
        0,
        1,
        PTRDIFF_MAX - 65536,
        PTRDIFF_MAX - 1,
        PTRDIFF_MAX,
        (size_t)PTRDIFF_MAX + 1,
        (size_t)PTRDIFF_MAX + 4096,
        (size_t)1 << 57,
        (size_t)1 << 62,
        SIZE_MAX - 65536,
        SIZE_MAX - 4096,
        SIZE_MAX - 4095,
        SIZE_MAX - 64,
        SIZE_MAX - 15,
        SIZE_MAX - 1,
        SIZE_MAX,
    };
    size_t kind = random_below(1000);
    if (kind < 60) {
        return edges[random_below(sizeof(edges) / sizeof(edges[0]))];
    }
    if (kind < 120) { /* next to a power of two */
        return ((size_t)8 << random_below(kind < 63 ? 18 : 13)) + random_below(5) - 2;
    }
    if (kind < 121) {
        return random_below((size_t)32 << 20);
    }
    return random_below((size_t)16 << random_below(kind < 140 ? 17 : 12)) + 1;
}

static size_t random_alignment(void)
{
    static const size_t edges[] = {
        0,
        1,
        2,
        3,
        4,
        5,
        12,
        24,
        40,
        48,
        100,
        1000,
        4097,
        (size_t)3 << 20,
        (size_t)1 << 62,
        SIZE_MAX / 2 + 1,
        SIZE_MAX / 2 + 2,
        SIZE_MAX - 1,
        SIZE_MAX,
    };
    size_t kind = random_below(100);
    if (kind < 35) {
        return edges[random_below(sizeof(edges) / sizeof(edges[0]))];
    }
    return (size_t)8 << random_below(kind < 98 ? 10 : 19);
}

static const char *alignment_kind(size_t alignment)
{
    if (alignment == 0) {
        return "0";
    }
    if ((alignment & (alignment - 1)) == 0) {
        return "power";
    }
    return alignment > SIZE_MAX / 2 + 1 ? "beyond" : "odd";
}

static unsigned char pattern(size_t index, size_t size)
{
    return (unsigned char)(index * 7 + size + 3);
}

/* Writes a pattern into the head and the tail of a new block. */
static void mark(const struct slot *slot)
{
    size_t head = slot->size < HEAD_BYTES ? slot->size : HEAD_BYTES;
    size_t tail = slot->size < TAIL_BYTES ? slot->size : TAIL_BYTES;
    for (size_t i = 0; i < head; i++) {
        slot->block[i] = pattern(i, slot->size);
    }
    for (size_t i = slot->size - tail; i < slot->size; i++) {
        slot->block[i] = pattern(i, slot->size);
    }
}

/* True when the first `kept` bytes still hold the marks of a block of `size` bytes. */
static bool marked(const unsigned char *block, size_t size, size_t kept)
{
    for (size_t i = 0; i < HEAD_BYTES && i < kept; i++) {
        if (block[i] != pattern(i, size)) {
            return false;
        }
    }
    for (size_t i = size < TAIL_BYTES ? 0 : size - TAIL_BYTES; i < kept; i++) {
        if (block[i] != pattern(i, size)) {
            return false;
        }
    }
    return true;
}

static bool all_zero(const unsigned char *block, size_t size)
{
    return size == 0 || (block[0] == 0 && memcmp(block, block + 1, size - 1) == 0);
}

static void release(struct slot *slot)
{
    errno = ERRNO_MARK;
    free(slot->block);
    report("free", error_name(errno));
    slot->block = NULL;
}

/* Reports a new block and puts it into the slot. `alignment` is what the caller may rely on. */
static void keep(
    struct slot *slot, const char *call, void *block, size_t size, size_t alignment, bool zeroed)
{
    char answer[128];
    int error = errno;
    if (block == NULL) {
        snprintf(answer, sizeof(answer), "NULL %s", error_name(error));
        report(call, answer);
        return;
    }
    bool aligned = ((uintptr_t)block & (alignment - 1)) == 0;
    bool large_enough = malloc_usable_size(block) >= size;
    bool clean = !zeroed || all_zero(block, size);
    snprintf(
        answer, sizeof(answer), "ok %s%s%s%s", error_name(error), aligned ? "" : " misaligned",
        large_enough ? "" : " too small", clean ? "" : " not zero");
    report(call, answer);
    slot->block = block;
    slot->size = size;
    mark(slot);
}

static void call_malloc(struct slot *slot)
{
    char call[128];
    size_t size = random_size();
    snprintf(call, sizeof(call), "malloc(%zu)", size);
    errno = ERRNO_MARK;
    keep(slot, call, malloc(size), size, 16, false);
}

static void call_calloc(struct slot *slot)
{
    char call[128];
    size_t size = random_size();
    size_t count = random_below(4) == 0 ? random_size() : 1 + random_below(3);
    size_t bytes = 0;
    bool overflow = __builtin_mul_overflow(count, size, &bytes);
    if (!overflow && bytes > ((size_t)1 << 18) && bytes < ((size_t)1 << 57)) {
        count = 1; /* a product that may or may not fit, or takes long to clear */
        bytes = size;
    }
    snprintf(call, sizeof(call), "calloc(%zu, %zu)", count, size);
    errno = ERRNO_MARK;
    keep(slot, call, calloc(count, size), bytes, 16, true);
}

static void resize(struct slot *slot, bool as_array)
{
    char call[128];
    char answer[128];
    size_t size = random_size();
    size_t count = as_array ? random_below(6) : 1;
    size_t bytes = count * size;
    bool held = slot->block != NULL;
    snprintf(
        call, sizeof(call), "%s(%s, %zu, %zu)", as_array ? "reallocarray" : "realloc",
        held ? "block" : "NULL", count, size);
    errno = ERRNO_MARK;
    void *resized = as_array ? reallocarray(slot->block, count, size) : realloc(slot->block, size);
    int error = errno;
    if (resized == NULL) {
        bool freed = held && bytes == 0;
        bool kept = !held || freed || marked(slot->block, slot->size, slot->size);
        snprintf(answer, sizeof(answer), "NULL %s%s", error_name(error), kept ? "" : " spoilt");
        report(call, answer);
        if (freed) {
            slot->block = NULL;
        }
        return;
    }
    size_t kept = slot->size < bytes ? slot->size : bytes;
    bool good = !held || marked(resized, slot->size, kept);
    snprintf(
        answer, sizeof(answer), "ok %s%s%s", error_name(error), good ? "" : " spoilt",
        malloc_usable_size(resized) >= bytes ? "" : " too small");
    report(call, answer);
    slot->block = resized;
    slot->size = bytes;
    mark(slot);
}

static size_t rounded_alignment(size_t alignment)
{
    size_t power = 16;
    while (power < alignment && power <= SIZE_MAX / 2) {
        power *= 2;
    }
    return power;
}

static void call_memalign(struct slot *slot, bool standard)
{
    char call[128];
    size_t alignment = random_alignment();
    size_t size = random_size();
    const char *kind = alignment_kind(alignment);
    snprintf(
        call, sizeof(call), "%s(%zu, %zu) alignment=%s", standard ? "aligned_alloc" : "memalign",
        alignment, size, kind);
    errno = ERRNO_MARK;
    void *block = standard ? aligned_alloc(alignment, size) : memalign(alignment, size);
    struct slot passing = {NULL, 0};
    bool disputed = standard && strcmp(kind, "power") != 0;
    keep(disputed ? &passing : slot, call, block, size, rounded_alignment(alignment), false);
    /* C libraries differ in whether such a block exists, so it must not live on. */
    free(passing.block);
}

static void call_posix_memalign(struct slot *slot)
{
    char call[128];
    char answer[128];
    size_t alignment = random_alignment();
    size_t size = random_size();
    void *block = &call;
    snprintf(
        call, sizeof(call), "posix_memalign(%zu, %zu) alignment=%s", alignment, size,
        alignment_kind(alignment));
    errno = ERRNO_MARK;
    int result = posix_memalign(&block, alignment, size);
    if (result == 0) {
        keep(slot, call, block, size, alignment, false);
        return;
    }
    int error = errno;
    size_t length = (size_t)snprintf(answer, sizeof(answer), "%s errno=", error_name(result));
    snprintf(
        answer + length, sizeof(answer) - length, "%s %s", error_name(error),
        block == &call ? "kept" : "overwritten");
    report(call, answer);
}

static void call_valloc(struct slot *slot, bool rounding)
{
    char call[128];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t size = random_size();
    snprintf(call, sizeof(call), "%s(%zu)", rounding ? "pvalloc" : "valloc", size);
    errno = ERRNO_MARK;
    void *block = rounding ? pvalloc(size) : valloc(size);
    keep(slot, call, block, size, page, false);
}

static void call_usable_size(const struct slot *slot)
{
    errno = ERRNO_MARK;
    size_t usable = malloc_usable_size(slot->block);
    int error = errno;
    bool good = slot->block == NULL ? usable == 0 : usable >= slot->size;
    report(
        slot->block == NULL ? "malloc_usable_size(NULL)" : "malloc_usable_size(block)",
        good ? error_name(error) : "wrong");
}

static void one_call(void)
{
    struct slot *slot = &slots[random_below(SLOTS)];
    size_t kind = random_below(100);
    if (kind < 28) {
        resize(slot, kind < 7);
        return;
    }
    if (kind < 31) {
        call_usable_size(slot);
        return;
    }
    release(slot);
    if (kind < 40) {
        return;
    }
    if (kind < 58) {
        call_malloc(slot);
    } else if (kind < 70) {
        call_calloc(slot);
    } else if (kind < 78) {
        call_memalign(slot, false);
    } else if (kind < 86) {
        call_memalign(slot, true);
    } else if (kind < 94) {
        call_posix_memalign(slot);
    } else {
        call_valloc(slot, kind < 97);
    }
}

int main(int count, char **arguments)
{
    Dl_info owner;
    if (count != 3) {
        fputs("usage: differential_calls SEED CALLS\n", stderr);
        return 2;
    }
    random_state = strtoull(arguments[1], NULL, 10) * 0x9e3779b97f4a7c15u + 0x1234567u;
    uint64_t calls = strtoull(arguments[2], NULL, 10);
    /* Who answers is part of the evidence. */
    void *answering = dlsym(RTLD_DEFAULT, "malloc");
    bool known = dladdr(answering, &owner) != 0;
    output_length = (size_t)snprintf(
        output, sizeof(output), "malloc from %s\n", known ? owner.dli_fname : "nowhere");
    while (call_number < calls) {
        one_call();
    }
    for (size_t i = 0; i < SLOTS; i++) {
        release(&slots[i]);
    }
    flush_output();
    return 0;
}
