/* See metadata.h. */
#include "map/metadata.h"

#include <string.h>

#include "base/assert.h"
#include "hardened.h"
#include "os/os.h"

enum {
    FIRST_CHUNK = 64 * 1024,
    /* Between closed pages a chunk is a mapping of its own, of which there should be few. */
    CHUNK = HARDENED ? 1024 * 1024 : 256 * 1024
};

_Static_assert(METADATA_SIZES *METADATA_GRAIN >= 17 * 1024, "the free lists cover all records");
_Static_assert(
    sizeof(struct metadata_chunk) <= METADATA_GRAIN, "it stands before the first record");

static CACHE_ALIGNED char first_chunk[FIRST_CHUNK];

struct metadata metadata;

struct metadata_chunk *metadata_chunks;

/* Lock held. */
static void use_chunk(char *memory, size_t size)
{
    struct metadata_chunk *chunk = (struct metadata_chunk *)memory;
    *chunk = (struct metadata_chunk){metadata_chunks, size};
    KEEP_STORE_ORDER();
    metadata_chunks = chunk;
    metadata.cursor = memory + METADATA_GRAIN;
    metadata.end = memory + size;
    COUNTER_ADD(&metadata.bytes, size);
}

/* Lock held. */
static void *take_record(size_t size, bool *used)
{
    struct free_record **list = &metadata.free[size / METADATA_GRAIN - 1];
    struct free_record *record = *list;
    if (record) {
        *list = record->next;
        *used = true;
        return record;
    }
    if (!HARDENED && !metadata_chunks)
        use_chunk(first_chunk, FIRST_CHUNK);
    if ((size_t)(metadata.end - metadata.cursor) < size)
        return NULL;
    void *fresh = metadata.cursor;
    metadata.cursor += size;
    return fresh;
}

void *metadata_alloc(size_t size)
{
    size = round_up(size, METADATA_GRAIN);
    ASSERT(size && size / METADATA_GRAIN <= METADATA_SIZES);
    lock_acquire(&metadata.lock);
    bool used = false;
    void *record = take_record(size, &used);
    lock_release(&metadata.lock);
    if (!record) {
        char *chunk =
            HARDENED ? hardened_map_records(CHUNK, true) : os_map(CHUNK, METADATA_GRAIN, NULL);
        if (!chunk)
            return NULL;
        lock_acquire(&metadata.lock);
        /* Another thread may have been faster. */
        record = take_record(size, &used);
        if (!record) {
            use_chunk(chunk, CHUNK);
            chunk = NULL;
            record = take_record(size, &used);
        }
        lock_release(&metadata.lock);
        if (chunk)
            os_discard(chunk, CHUNK);
    }
    /* A fresh record is zero, and unwritten pages of it take no memory. */
    if (used)
        memset(record, 0, size);
    return record;
}

void metadata_free(void *record, size_t size)
{
    struct free_record *freed = record;
    struct free_record **list = &metadata.free[round_up(size, METADATA_GRAIN) / METADATA_GRAIN - 1];
    lock_acquire(&metadata.lock);
    freed->next = *list;
    KEEP_STORE_ORDER();
    *list = freed;
    lock_release(&metadata.lock);
}

size_t metadata_bytes(void)
{
    return ATOMIC_LOAD_RELAXED(&metadata.bytes);
}

SLOW_PATH void metadata_repair(void)
{
    /* The lists are sound after each write. The end of the chunk may not be set. */
    metadata.end = metadata.cursor;
    size_t bytes = 0;
    for (const struct metadata_chunk *chunk = metadata_chunks; chunk; chunk = chunk->next)
        bytes += chunk->bytes;
    ATOMIC_STORE_RELAXED(&metadata.bytes, bytes);
}
