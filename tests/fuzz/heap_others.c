/* The target `heap`: steps beside those that allocate and free blocks of the model: what must be
 * refused, other names, reports. */
#include "heap_others.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system.h"

extern void *fuzzed_pvalloc(size_t size);
extern void fuzzed_sdallocx(void *block, size_t size, int flags);
extern int fuzzed_mallopt(int parameter, int value);
extern void fuzzed_malloc_stats(void);
extern int fuzzed_malloc_info(int options, FILE *stream);
extern struct mallinfo2 fuzzed_mallinfo2(void);

/* ---- Steps that must be refused -------------------------------------------------------------- */

static void expect_refusal(struct actor *actor, const void *result, int code)
{
    if (result != NULL || errno != code)
        fuzz_failed(
            "record %llu: %p with errno %d, where NULL and %d are right",
            (unsigned long long)crew.records, result, errno, code);
    *actor->seat.errno_place = ERRNO_MARK;
}

/* behaviours 9, 10 and 13: too large, with an overflow in the product, and the block stays. */
void step_too_large(struct actor *actor, const struct block *slot, const struct record *record)
{
    const struct entries *entries = actor->seat.entries;
    size_t size = decode_refused_size(record);
    size_t factor = 2 + record->fine;
    void *place = actor;

    expect_refusal(actor, entries->malloc(size), ENOMEM);
    expect_refusal(actor, entries->calloc(size / factor + 1, factor), ENOMEM);
    expect_refusal(actor, entries->realloc(slot->address, size), ENOMEM);
    expect_refusal(actor, entries->reallocarray(slot->address, factor, size), ENOMEM);
    expect_refusal(actor, entries->aligned_alloc((size_t)1 << record->fine % 63, size), ENOMEM);
    expect_refusal(actor, entries->mallocx(size, record->fine & 0x7F), ENOMEM);
    expect_refusal(actor, entries->rallocx(slot->address, size, record->fine & 0x7F), ENOMEM);
    if (slot->address)
        FUZZ_CHECK(entries->xallocx(slot->address, size, 0, record->fine & 0x40) == slot->usable);
    FUZZ_CHECK(entries->posix_memalign(&place, 64, size) == ENOMEM && place == actor);
    expect_refusal(actor, NULL, ENOMEM);
}

/* behaviours 17 to 19. */
void step_bad_alignment(struct actor *actor, const struct record *record)
{
    const struct entries *entries = actor->seat.entries;
    size_t align = record->fine | (size_t)record->size << 8;
    void *place = actor;

    if ((align & (align - 1)) != 0 || align == 0)
        expect_refusal(actor, entries->aligned_alloc(align, record->slot), EINVAL);
    if ((align & (align - 1)) != 0 || align < sizeof(void *)) {
        FUZZ_CHECK(entries->posix_memalign(&place, align, record->slot) == EINVAL);
        FUZZ_CHECK(place == actor && errno == ERRNO_MARK);
    }
    expect_refusal(actor, entries->memalign(SIZE_MAX / 2 + 2 + align, record->slot), EINVAL);
}

/* ---- Other names, and reports ------------------------------------------------------------------
 */

/* Names that no record is made for. What they return is given back at once. */
void step_other_names(struct actor *actor, const struct record *record)
{
    size_t size = decode_size(record), good = hakmem_good_size(size);
    uint64_t refused = fuzz_system.refusals;
    void *block = fuzzed_pvalloc(size);

    FUZZ_CHECK(good >= size && hakmem_good_size(good) == good);
    FUZZ_CHECK(actor->seat.entries->malloc_usable_size(NULL) == 0);
    (void)fuzzed_mallopt((signed char)record->slot, record->fine);
    if (!block) {
        FUZZ_CHECK(fuzz_system.refusals != refused && errno == ENOMEM);
        errno = ERRNO_MARK;
        return;
    }
    FUZZ_CHECK((uintptr_t)block % 4096 == 0);
    FUZZ_CHECK(hakmem_usable_size(block) >= (size + 4095) / 4096 * 4096);
    fuzzed_sdallocx(block, size, 0);
    FUZZ_CHECK(errno == ERRNO_MARK);
}

/* A report into a buffer of any length, which must be cut off there. */
static void report_json_cut(size_t capacity)
{
    static char text[1 << 16];
    size_t length;

    memset(text, 'x', sizeof text);
    length = hakmem_stats_json(text, capacity);
    FUZZ_CHECK(text[capacity] == 'x');
    FUZZ_CHECK(capacity == 0 || strlen(text) == (length < capacity ? length : capacity - 1));
}

/* The C library's reports: they must agree with each other. */
static void report_as_libc(void)
{
    struct hakmem_stats stats;
    struct hakmem_usage class, big;
    struct mallinfo2 info = fuzzed_mallinfo2();
    uint64_t class_blocks = 0;

    hakmem_get_stats(&stats, sizeof stats);
    hakmem_get_tier(HAKMEM_TIER_BIG, &big, sizeof big);
    FUZZ_CHECK(info.uordblks + info.hblkhd == stats.live_bytes);
    FUZZ_CHECK(info.hblkhd == big.live_bytes);
    for (unsigned i = 0; hakmem_get_class(i, &class, sizeof class); i++)
        class_blocks += class.live_blocks;
    FUZZ_CHECK(class_blocks == stats.live_blocks - big.live_blocks);
}

void step_report(const struct record *record)
{
    static FILE *nowhere;

    switch (record->size % 4) {
    case 0:
        report_json_cut((size_t)record->slot << (record->fine % 9));
        break;
    case 1:
        report_as_libc();
        break;
    case 2:
        fuzz_system.captures = true;
        fuzzed_malloc_stats();
        fuzz_system.captures = false;
        break;
    default:
        nowhere = nowhere ? nowhere : fopen("/dev/null", "w");
        FUZZ_CHECK(nowhere && fuzzed_malloc_info(1, nowhere) == EINVAL);
        (void)fuzzed_malloc_info(0, nowhere);
    }
    errno = ERRNO_MARK;
}
