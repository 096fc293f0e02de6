/* musl's <limits.h> defines PAGE_SIZE as the system's; core/ has one of its own. */
#include_next <limits.h>
#undef PAGE_SIZE
