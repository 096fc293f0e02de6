/* The library of handlers.c. */
#ifndef HANDLERS_LIBRARY_H
#define HANDLERS_LIBRARY_H

/* Allocates and frees under the library's mutex. */
void library_work(unsigned round);

#endif
