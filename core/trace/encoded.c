/* See encoded.h. */
#include "trace/encoded.h"

/* In the order of bytes of the processors that there are. */
uint64_t read_fixed(struct bytes *bytes, size_t size)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)read_byte(bytes) << 8 * i;
    return value;
}

uint64_t read_leb(struct bytes *bytes, bool is_signed)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = read_byte(bytes);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80 && !bytes->is_bad);
    if (is_signed && byte & 0x40 && shift < 64)
        value |= ~(uint64_t)0 << shift;
    return value;
}

uintptr_t read_encoded(struct bytes *bytes, uint8_t encoding)
{
    uintptr_t here = (uintptr_t)bytes->at, value = 0;
    switch (encoding & ENCODED_FORMAT) {
    case ENCODED_SIGNED_4:
        value = (uintptr_t)(int32_t)read_fixed(bytes, 4);
        break;
    case ENCODED_UNSIGNED_4:
        value = read_fixed(bytes, 4);
        break;
    case ENCODED_ABSOLUTE:
    case ENCODED_8:
    case ENCODED_8 | 8:
        value = read_fixed(bytes, 8);
        break;
    default:
        bytes->is_bad = true;
    }
    if ((encoding & ENCODED_BASE) == ENCODED_FROM_HERE)
        value += here;
    else if ((encoding & ENCODED_BASE) != ENCODED_ABSOLUTE)
        bytes->is_bad = true;
    return value;
}
