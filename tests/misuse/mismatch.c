#include "misuse.h"

/* operator delete is told another alignment than operator new was. The block is freed.
 * all: not caught
 * hardened all: at once | operator delete(): wrong alignment for pointer BAD: 4096, not 64 */
MISTAKE(
    mismatch, aligned_delete_alignment, announced(_ZnwmSt11align_val_t(size, 64)),
    _ZdlPvSt11align_val_t(block, 4096))

/* What operator new returned is given to operator delete with an alignment. The block is freed.
 * all: not caught
 * hardened all: at once | operator delete(): wrong alignment for pointer BAD: 64, not 16 */
MISTAKE(mismatch, aligned_delete_of_new, announced(_Znwm(size)), _ZdlPvSt11align_val_t(block, 64))

/* What malloc returned is given to operator delete[]. The block is freed.
 * all: not caught
 * hardened all: at once | operator delete[](): wrong function for pointer BAD: allocated by malloc
 */
MISTAKE(mismatch, delete_array_of_malloc, new_victim(size), _ZdaPv(block))

/* What operator new returned is given to operator delete[]. The block is freed.
 * all: not caught
 * hardened all: at once | operator delete[](): wrong function for pointer BAD: allocated by
 *     operator new */
FREED(mismatch, delete_array_of_new, announced(_Znwm(size)), _ZdaPv(hide(block)))

/* What operator new with an alignment returned is given to operator delete without. The block is
 * freed.
 * all: not caught
 * hardened all: at once | operator delete(): wrong alignment for pointer BAD: 16, not 64 */
MISTAKE(mismatch, delete_of_aligned_new, announced(_ZnwmSt11align_val_t(size, 64)), _ZdlPv(block))

/* What calloc returned is given to operator delete. The block is freed.
 * all: not caught
 * hardened all: at once | operator delete(): wrong function for pointer BAD: allocated by malloc */
MISTAKE(mismatch, delete_of_calloc, announced(calloc(1, size)), _ZdlPv(block))

/* What malloc returned is given to operator delete. The block is freed.
 * all: not caught
 * hardened all: at once | operator delete(): wrong function for pointer BAD: allocated by malloc */
FREED(mismatch, delete_of_malloc, new_victim(size), _ZdlPv(hide(block)))

/* What operator new[] returned is given to operator delete. The block is freed.
 * all: not caught
 * hardened all: at once | operator delete(): wrong function for pointer BAD: allocated by operator
 *     new[] */
MISTAKE(mismatch, delete_of_new_array, announced(_Znam(size)), _ZdlPv(block))

/* What operator new[] returned for no bytes is given to operator delete.
 * any: not caught
 * hardened any: at once | operator delete(): wrong function for pointer BAD: allocated by operator
 *     new[] */
MISTAKE(mismatch, delete_of_new_array_of_nothing, announced(_Znam(0)), _ZdlPv(block))

/* free_aligned_sized is told an alignment that the block does not have. The block is freed.
 * all: not caught
 * hardened all: at once | free_aligned_sized(): wrong alignment for pointer BAD: 65536, not 16 */
FREED(
    mismatch, free_aligned_sized_alignment, new_victim(size),
    free_aligned_sized(hide(block), 65536, size))

/* free_aligned_sized is told what is no alignment. The block is freed.
 * all: not caught
 * hardened all: at once | free_aligned_sized(): wrong alignment for pointer BAD: 3, not 16 */
FREED(
    mismatch, free_aligned_sized_no_alignment, new_victim(size),
    free_aligned_sized(hide(block), 3, size))

/* free_aligned_sized is told the right alignment, and half of the size. The block is freed.
 * all: not caught
 * hardened all: at once | free_aligned_sized(): wrong size for pointer BAD: N, not N */
MISTAKE(
    mismatch, free_aligned_sized_size, announced(aligned_alloc(64, size)),
    free_aligned_sized(block, 64, size / 2))

/* What operator new returned is given to free. The block is freed.
 * all: not caught
 * hardened all: at once | free(): wrong function for pointer BAD: allocated by operator new */
FREED(mismatch, free_of_new, announced(_Znwm(size)), free(hide(block)))

/* What operator new[] returned is given to free. The block is freed.
 * all: not caught
 * hardened all: at once | free(): wrong function for pointer BAD: allocated by operator new[] */
MISTAKE(mismatch, free_of_new_array, announced(_Znam(size)), free(block))

/* What operator new returned for no bytes is given to free.
 * any: not caught
 * hardened any: at once | free(): wrong function for pointer BAD: allocated by operator new */
MISTAKE(mismatch, free_of_new_nothing, announced(_Znwm(0)), free(block))

/* A block with an alignment is given to free_sized. The block is freed.
 * all: not caught
 * hardened all: at once | free_sized(): wrong alignment for pointer BAD: 16, not 4096 */
MISTAKE(
    mismatch, free_sized_of_aligned, announced(aligned_alloc(4096, size)), free_sized(block, size))

/* free_sized is told the size of one element of an array from calloc.
 * all: not caught
 * hardened all: at once | free_sized(): wrong size for pointer BAD: N, not N */
MISTAKE(
    mismatch, free_sized_of_calloc_total, announced(calloc(4, size / 4)),
    free_sized(block, size / 4))

/* free_sized is told a size, of a block of no bytes.
 * any: at once | free_sized(): wrong size for pointer BAD: N, not N */
MISTAKE(mismatch, free_sized_of_nothing, announced(malloc(0)), free_sized(block, size))

/* free_sized is told one byte less than malloc was. The block is freed.
 * all: not caught
 * hardened all: at once | free_sized(): wrong size for pointer BAD: N, not N */
MISTAKE(mismatch, free_sized_off_by_one, new_victim(size), free_sized(block, size - 1))

/* free_sized is told sixteen times the block's size. Where that is not seen, the block is freed.
 * tiny, mid, large: at once | free_sized(): wrong size for pointer BAD: N, not N
 * big: not caught
 * hardened all: at once | free_sized(): wrong size for pointer BAD: N, not N */
FREED(mismatch, free_sized_too_large, new_victim(size), free_sized(hide(block), 16 * size))

/* free_sized is told half of the block's size. hakmem knows better: the block is freed.
 * all: not caught
 * hardened all: at once | free_sized(): wrong size for pointer BAD: N, not N */
FREED(mismatch, free_sized_too_small, new_victim(size), free_sized(hide(block), size / 2))

/* What operator new returned is given to realloc.
 * all: not caught
 * hardened all: at once | realloc(): wrong function for pointer BAD: allocated by operator new */
MISTAKE(mismatch, realloc_of_new, announced(_Znwm(size)), hide(realloc(block, 2 * size)))

/* operator delete is told the right alignment, and twice the size that operator new was. The block
 * is freed.
 * all: not caught
 * hardened all: at once | operator delete(): wrong size for pointer BAD: N, not N */
MISTAKE(
    mismatch, sized_aligned_delete_size, announced(_ZnwmSt11align_val_t(size, 64)),
    _ZdlPvmSt11align_val_t(block, 2 * size, 64))

/* operator delete is told twice the size that operator new was. The block is freed.
 * all: not caught
 * hardened all: at once | operator delete(): wrong size for pointer BAD: N, not N */
FREED(mismatch, sized_delete, announced(_Znwm(size)), _ZdlPvm(hide(block), 2 * size))

/* operator delete[] is told twice the size that operator new[] was. The block is freed.
 * all: not caught
 * hardened all: at once | operator delete[](): wrong size for pointer BAD: N, not N */
MISTAKE(mismatch, sized_delete_array, announced(_Znam(size)), _ZdaPvm(block, 2 * size))

/* operator delete is told a size, of what operator new returned for no bytes.
 * any: not caught
 * hardened any: at once | operator delete(): wrong size for pointer BAD: N, not N */
MISTAKE(mismatch, sized_delete_of_nothing, announced(_Znwm(0)), _ZdlPvm(block, size))

/* operator delete is told half of the size that operator new was. The block is freed.
 * all: not caught
 * hardened all: at once | operator delete(): wrong size for pointer BAD: N, not N */
MISTAKE(mismatch, sized_delete_too_small, announced(_Znwm(size)), _ZdlPvm(block, size / 2))
