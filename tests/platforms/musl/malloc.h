/* The parts of glibc's <malloc.h> that musl's lacks and core/override/libc.c implements. */
#ifndef PLATFORMS_MUSL_MALLOC_H
#define PLATFORMS_MUSL_MALLOC_H

#include_next <malloc.h>

#include <stdio.h>

#define M_CHECK_ACTION (-5)

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
