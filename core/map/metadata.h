/* Memory for the allocator's own records: slabs, superslabs, big-block records.
 *
 * Records are cut from chunks and go back to free lists by size; chunks are never returned, so a
 * pointer to a record stays readable for ever, even if a racing misuse of the program leads to a
 * record that was just freed. The first chunk is part of the library, so a small program never asks
 * the system for more.
 */
#ifndef MAP_METADATA_H
#define MAP_METADATA_H

#include "base/macros.h"
#include "os/lock.h"

/* The beginning of each chunk. Only metadata_repair walks the chunks, and observers from outside,
 * to learn which pages hold records (report/descriptor.h). */
struct metadata_chunk {
    struct metadata_chunk *next; /* const once linked: the one before */
    size_t bytes;                /* const: of the chunk, with this */
};

enum { METADATA_GRAIN = 64, METADATA_SIZES = 272 };

struct free_record {
    struct free_record *next;
};

struct metadata {
    struct lock lock;
    char *cursor;                             /* lock: the unused rest of the newest chunk */
    char *end;                                /* lock */
    struct free_record *free[METADATA_SIZES]; /* lock: by size in grains, less one */
    size_t bytes;                             /* written under lock, read by any thread */
};

extern struct metadata metadata;

extern struct metadata_chunk *metadata_chunks; /* written under lock: the newest */

/* Zeroed memory of `size` bytes, aligned to 64; NULL when the system has none left. */
void *metadata_alloc(size_t size);

/* Takes back a record of metadata_alloc for the same `size`. */
void metadata_free(void *record, size_t size);

/* Bytes taken from the system or the library for records; atomic relaxed, any thread. */
size_t metadata_bytes(void);

/* In a fork child: repairs the free lists, whose lock was held by a thread that does not exist
 * here. */
void metadata_repair(void);

#endif
