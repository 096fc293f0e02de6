/* Tells a mismatch of new and free that is no mistake.
 *
 * A library may have operators of its own for its own calls, which lead to malloc and free, and
 * still give blocks to others, and take theirs: LLVM's does so, linked with the C++ library's
 * archive and -Bsymbolic. The others' operators are ours, since those are found first:
 *
 *     libLLVM   new -> its own -> malloc           block ->   program   delete -> ours
 *     program   new -> ours                        block ->   libLLVM   delete -> its own -> free
 *
 * Such a library exports an operator, and no relocation of its asks for it. The C++ library's own
 * file has one. No record tells which library made a block: so in a process that has loaded such a
 * library, blocks of malloc and of new are not told apart.
 */
#ifndef HARDENED_OPERATORS_H
#define HARDENED_OPERATORS_H

#include <stdbool.h>

/* Whether such a library is or was loaded. Looks through all that are loaded, for a caller that
 * else would end the program. Takes the dynamic linker's lock, and allocates nothing. */
bool operators_of_others(void);

#endif
