/* A string without its end is copied to a block whose neighbour holds another one: nothing of that
 * is read along in the preset, where a zero stands between the two.
 *
 * all: reads data or reads zero or ends by SIGSEGV
 * hardened tiny, mid: reads zero
 * hardened large, big: reads zero or ends by SIGSEGV
 */
#include "access.h"

void misuse(size_t size)
{
    char *block = surrounded(size);
    memset(block, 'a', size);
    has_read(strlen(hide(block)) == size);
    survived();
}
