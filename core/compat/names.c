/* See names.h. */
#include "compat/names.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool matches(const char *pattern, const char *name, size_t *number)
{
    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (*name++ != *pattern)
                return false;
            continue;
        }
        if (!is_digit(*name))
            return false;
        for (*number = 0; is_digit(*name); name++)
            *number = *number * 10 + (size_t)(*name - '0');
    }
    return *name == '\0';
}

int names_find(const char *list, const char *name, size_t *number)
{
    for (int index = 0; name && *list; index++, list += strlen(list) + 1)
        if (matches(list, name, number))
            return index;
    return -1;
}

const char *names_at(const char *list, size_t index)
{
    for (; *list; index--, list += strlen(list) + 1)
        if (index == 0)
            return list;
    return NULL;
}
