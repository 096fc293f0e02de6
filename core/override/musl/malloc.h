/* Declarations of glibc's <malloc.h> that musl's lacks: hakmem has them with either. The numbers
 * and the layout are glibc's, for programs that carry them. */
#ifndef OVERRIDE_MUSL_MALLOC_H
#define OVERRIDE_MUSL_MALLOC_H

#include_next <malloc.h>

#include <stdio.h>

#define M_MXFAST 1
#define M_NLBLKS 2
#define M_GRAIN 3
#define M_KEEP 4
#define M_TRIM_THRESHOLD (-1)
#define M_TOP_PAD (-2)
#define M_MMAP_THRESHOLD (-3)
#define M_MMAP_MAX (-4)
#define M_CHECK_ACTION (-5)
#define M_PERTURB (-6)
#define M_ARENA_TEST (-7)
#define M_ARENA_MAX (-8)

struct mallinfo {
    int arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

struct mallinfo2 {
    size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};

int mallopt(int parameter, int value);
int malloc_trim(size_t pad);
int malloc_info(int options, FILE *stream);
void malloc_stats(void);
void *pvalloc(size_t size);
struct mallinfo mallinfo(void);
struct mallinfo2 mallinfo2(void);

#endif
