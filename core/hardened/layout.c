/* The layout of the hardened library for `hakmem inspect`, beside the descriptor
 * (report/descriptor.h). The command reads these numbers in this order. */
#include <stddef.h>

#include "hardened/front.h"
#include "hardened/hold.h"

enum { NUMBERS = 10 };

const uint32_t hardened_layout[1 + NUMBERS] = {
    NUMBERS,
    offsetof(struct heap, hold),
    sizeof(struct hold),
    offsetof(struct hold, ready),
    HOLD_CLASSES,
    sizeof(struct ready),
    offsetof(struct ready, takes),
    offsetof(struct ready, frees),
    offsetof(struct ready, fetched),
    WORD_STATE_MASK,
    WORD_LIVE,
};
