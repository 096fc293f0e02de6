/* Serves calls before the library's thread-local variables have their first values.
 *
 * The dynamic linker sets them after it has relocated everything, but runs resolvers of indirect
 * functions while it relocates; a resolver of a library that depends on this one may call malloc.
 * Indirect functions of this library are resolved before those of its dependents: so the resolver
 * of one that is never called sets the variables. Only in the shared library: in static programs
 * resolvers run before there are thread-local variables at all.
 */
#include "thread/heap.h"

static void nothing(void)
{
}

/* The dynamic linker's calling convention: returns the address of the function. */
__attribute__((used)) static void (*resolve_early(void))(void)
{
    heap_start_early();
    return nothing;
}

static void early(void) __attribute__((ifunc("resolve_early")));

/* The reference that makes the linker emit the relocation. */
__attribute__((used, retain)) static void (*const volatile reference)(void) = early;
