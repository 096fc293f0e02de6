/* A library with thread-local variables of its own, to be loaded and unloaded again and again
 * (behaviour 28). The first access in a thread makes the dynamic linker allocate its TLS block.
 */
#include <stddef.h>

/* Larger than what the C library keeps in reserve, so that the block is always allocated. */
static __thread char scratch[9000];
static __thread int touched = 42;

int tls_lib_touch(int value);

int tls_lib_touch(int value)
{
    int before = touched;
    touched += value;
    scratch[(size_t)(unsigned)value % sizeof scratch] = (char)value;
    return before;
}
