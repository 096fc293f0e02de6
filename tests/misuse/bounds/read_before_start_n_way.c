/* DISTANCE bytes before the start of a block that has neighbours are read, by WAY.
 *
 * all: reads data or reads zero
 * big: reads data or reads zero or ends by SIGSEGV
 * hardened tiny, mid, large: reads data or reads zero or ends by SIGSEGV
 * hardened big: ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    read_bytes(block - DISTANCE, DISTANCE);
    survived();
    free_surrounded();
}
