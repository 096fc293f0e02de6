/* Memory some pages from a block, in which malloc has never handed out a block, is written to; then
 * blocks are handed out there.
 *
 * tiny: not caught or not applicable
 * mid, large, big: not applicable
 * hardened tiny: at once or not applicable
 *     hakmem: malloc(): stray write to NEIGHBOUR
 */
#include "access.h"

void misuse(size_t size)
{
    enum { LENGTH_MAX = 512, DISTANCE = 16384, WRITTEN = 16 };
    /* Of longer ones the slab may end before. */
    if (size > LENGTH_MAX)
        not_applicable();
    char *block = need(malloc(size));
    announce(block, block);
    write_bytes(block + DISTANCE, WRITTEN);
    for (size_t i = many(size); i > 0; i--)
        (void)need(malloc(size));
    survived();
}
