/* See nearest.h. */
#include "base/nearest.h"

#include <string.h>

unsigned nearest_distance(const char *name, size_t length, const char *other)
{
    unsigned row[NEAREST_LETTERS + 1];
    size_t other_length = size_min(strlen(other), NEAREST_LETTERS);
    length = size_min(length, NEAREST_LETTERS);
    for (unsigned j = 0; j <= other_length; j++)
        row[j] = j;
    for (unsigned i = 1; i <= length; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= other_length; j++) {
            unsigned replace = diagonal + (name[i - 1] != other[j - 1]);
            unsigned edit = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = replace < edit ? replace : edit;
        }
    }
    return row[other_length];
}
