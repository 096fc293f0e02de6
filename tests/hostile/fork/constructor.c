/* A library's constructor forks, beside a thread that allocates, before the allocator's own
 * constructor had its turn: the children must work all the same.
 *
 * usage: constructor
 */
#include "hostile.h"

int main(void)
{
    conclude();
    return 0;
}
