/* What a walk over a stack reads of the process. It trusts no address: for what does not lie in the
 * thread's own stack, the system is asked.
 */
#ifndef TRACE_READER_H
#define TRACE_READER_H

#include "base/macros.h"

struct range {
    uintptr_t start, end;
};

ALWAYS_INLINE bool range_has(const struct range *range, uintptr_t address)
{
    return address - range->start < range->end - range->start;
}

/* A loaded file. */
struct code {
    struct range range;
    uintptr_t table; /* address of its .eh_frame_hdr; 0: it has none */
};

struct reader {
    /* Finds the file that an address lies in; NULL: none is asked for. */
    bool (*find)(uintptr_t address, struct code *code);
    struct range stack; /* stays; empty: it is not known where the stack lies */
    bool is_sampling;   /* the process is sound: files stay, and their tables are right */
    struct code code;   /* the one that was found last */
    uintptr_t page;     /* number, from 1, of the page that the system was asked for last */
};

/* The file that the address lies in is in `reader->code` then, which is empty if there is none. */
void reader_find(struct reader *reader, uintptr_t address);

ALWAYS_INLINE bool in_stack(const struct reader *reader, uintptr_t address, size_t size)
{
    return range_has(&reader->stack, address) && reader->stack.end - address >= size;
}

bool can_read(struct reader *reader, uintptr_t address, size_t size);

/* False: it cannot be read. */
bool read_word(struct reader *reader, uintptr_t address, uintptr_t *word);

#endif
