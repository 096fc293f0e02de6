/* What the threads wrote last, for fork: the child's copy of the memory is made between two
 * instructions of each other thread, not only between two steps. So the plain writes of a thread
 * since its last step are kept, and fork may take them back to any place, the last ones first.
 */
#include <string.h>

#include "engine/engine.h"

/* Where a thread has written more than so much since its last step, as when it makes a heap, not
 * every place is tried. */
enum { PLACES_MAX = 100, WRITES_MAX = 1 << 13, BYTES_MAX = 1 << 17 };

struct write {
    char *address;
    uint32_t size, before; /* offset of what was there */
};

static struct {
    struct write writes[WRITES_MAX];
    char bytes[BYTES_MAX];
    uint32_t count, used;
} logs[CLOCKS];

void undo_begin(int thread)
{
    logs[thread].count = logs[thread].used = 0;
}

void undo_record(void *address, size_t size)
{
    uint32_t count = logs[current].count, used = logs[current].used;
    if (!concurrent)
        return;
    if (count == WRITES_MAX || used + size > BYTES_MAX)
        model_fail("WRITES_MAX or BYTES_MAX is too small");
    memcpy(&logs[current].bytes[used], address, size);
    logs[current].writes[count] = (struct write){address, (uint32_t)size, used};
    logs[current].count++;
    logs[current].used += (uint32_t)size;
}

unsigned undo_places(int thread)
{
    return logs[thread].count < PLACES_MAX ? logs[thread].count : PLACES_MAX;
}

void undo_to_place(int thread, unsigned place)
{
    unsigned places = undo_places(thread);
    for (unsigned count = logs[thread].count * place / (places ? places : 1); count > 0; count--) {
        const struct write *write = &logs[thread].writes[--logs[thread].count];
        memcpy(write->address, &logs[thread].bytes[write->before], write->size);
        shadow_rewritten(write->address, write->size);
    }
}
