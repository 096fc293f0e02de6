/* A block is made shorter by realloc and as long as before: the bytes that it had lost are read.
 *
 * all: reads data
 * hardened all: reads zero
 */
#include "access.h"

void misuse(size_t size)
{
    size_t shorter = size - size / 16;
    char *block = memset(need(malloc(size)), 0x41, size);
    block = need(realloc(block, shorter));
    block = need(realloc(block, size));
    announce(block, block);
    read_bytes(block + shorter, size - shorter);
}
