/* See reader.h. */
#include "trace/reader.h"

#include "os/os.h"

void reader_find(struct reader *reader, uintptr_t address)
{
    if (!range_has(&reader->code.range, address) &&
        (!reader->find || !reader->find(address, &reader->code)))
        reader->code = (struct code){0};
}

bool can_read(struct reader *reader, uintptr_t address, size_t size)
{
    enum { PAGE_BYTES = 4096 };
    if (in_stack(reader, address, size))
        return true;
    uintptr_t page = address / PAGE_BYTES + 1;
    if ((address + size - 1) / PAGE_BYTES + 1 == page && page == reader->page)
        return true;
    if (!os_is_readable((const void *)address, size))
        return false;
    reader->page = page;
    return true;
}

/* May read memory that a sanitizer watches. */
__attribute__((no_sanitize("address", "thread"))) bool read_word(
    struct reader *reader, uintptr_t address, uintptr_t *word)
{
    if (address % sizeof *word || !can_read(reader, address, sizeof *word))
        return false;
    *word = *(const volatile uintptr_t *)address;
    return true;
}
