/* The descriptor: tells an observer from outside where the allocator's structures lie.
 *
 * `hakmem inspect` reads the memory of another process, which takes no time of that process, or of
 * a core file. This one constant tells it the addresses at which all walks begin, and offsets and
 * sizes of the fields on the way, as the compiler fills them in (descriptor.def).
 *
 *     | magic | self | layout, counts | version | address .. address | item .. item |
 *
 * An observer finds it by its first word, in the part of an ELF file that relocation writes to: so
 * no symbols are needed, not even in a statically linked program, and core files have it. `self`,
 * its own address, tells it from a copy of the magic.
 */
#ifndef REPORT_DESCRIPTOR_H
#define REPORT_DESCRIPTOR_H

#include <stdint.h>

/* Counts up when a reader of the former layout would misread this one, but not when rows are added
 * at an end: such a reader reads the rows that it knows. */
enum { DESCRIPTOR_LAYOUT = 4 };

#define DESCRIPTOR_MAGIC "hakmem-layout\r\n"

/* Rows of descriptor.def of each kind. */
enum {
#define ADDRESS(object) +1
#define MEASURED(object) +1
#define CALL(function) +1
#define NUMBER(constant)
#define SIZE(type)
#define FIELD(type, member)
#define TAIL(type, member)
    DESCRIPTOR_ADDRESSES = 0
#include "report/descriptor.def"
    ,
#define ADDRESS(object)
#define MEASURED(object)
#define CALL(function)
#define NUMBER(constant) +1
#define SIZE(type) +1
#define FIELD(type, member) +1
#define TAIL(type, member) +1
    DESCRIPTOR_ITEMS = 0
#include "report/descriptor.def"
};

/* A number or the offset of a field, and the bytes of a struct or a field. */
struct descriptor_item {
    uint32_t number;
    uint32_t bytes;
};

/* The fields before `address` are the same in every layout. */
struct descriptor {
    char magic[16];
    const struct descriptor *self;
    uint32_t layout;
    uint16_t addresses, items; /* rows */
    char version[16];          /* of the library, as text */
    const void *address[DESCRIPTOR_ADDRESSES];
    struct descriptor_item item[DESCRIPTOR_ITEMS];
};

/* Const. */
extern const struct descriptor descriptor;

#endif
