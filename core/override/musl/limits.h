/* musl's <limits.h> has a PAGE_SIZE, the system's; in core/ the word is hakmem's own. */
#include_next <limits.h>
#undef PAGE_SIZE
