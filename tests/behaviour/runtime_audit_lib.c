/* The smallest audit library: the dynamic linker loads it, with a C library of its own, before
 * the program, and tells it about every object and every symbol bound (behaviour 28).
 */
#include <link.h>
#include <stdint.h>

unsigned la_version(unsigned version)
{
    return version < LAV_CURRENT ? version : LAV_CURRENT;
}

unsigned la_objopen(struct link_map *map, Lmid_t name_space, uintptr_t *cookie)
{
    (void)map;
    (void)name_space;
    (void)cookie;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}
