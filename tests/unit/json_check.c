/* See json_check.h. Each function takes the text at the start of something and returns the text
 * behind it, or NULL when it is not well-formed. */
#include "json_check.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_value(const char *text);

static const char *skip_blanks(const char *text)
{
    while (*text == ' ' || *text == '\n' || *text == '\t' || *text == '\r')
        text++;
    return text;
}

static const char *skip_string(const char *text)
{
    if (*text++ != '"')
        return NULL;
    for (; *text != '"'; text++) {
        if ((unsigned char)*text < ' ')
            return NULL;
        if (*text == '\\' && *++text != '"' && *text != '\\')
            return NULL;
    }
    return text + 1;
}

static const char *skip_number(const char *text)
{
    text += *text == '-';
    if (!isdigit((unsigned char)*text) || (*text == '0' && isdigit((unsigned char)text[1])))
        return NULL;
    while (isdigit((unsigned char)*text))
        text++;
    return text;
}

/* A name and its colon. */
static const char *skip_name(const char *text)
{
    text = skip_string(text);
    if (!text)
        return NULL;
    text = skip_blanks(text);
    return *text == ':' ? skip_blanks(text + 1) : NULL;
}

static const char *skip_members(const char *text, bool named, char end)
{
    text = skip_blanks(text + 1);
    if (*text == end)
        return text + 1;
    for (;;) {
        if (named)
            text = skip_name(text);
        text = text ? skip_value(text) : NULL;
        if (!text)
            return NULL;
        text = skip_blanks(text);
        if (*text == end)
            return text + 1;
        if (*text++ != ',')
            return NULL;
        text = skip_blanks(text);
    }
}

static const char *skip_value(const char *text)
{
    static const char *const words[] = {"true", "false", "null"};
    if (*text == '{')
        return skip_members(text, true, '}');
    if (*text == '[')
        return skip_members(text, false, ']');
    if (*text == '"')
        return skip_string(text);
    for (size_t i = 0; i < 3; i++)
        if (strncmp(text, words[i], strlen(words[i])) == 0)
            return text + strlen(words[i]);
    return skip_number(text);
}

bool json_is_valid(const char *text)
{
    text = skip_value(skip_blanks(text));
    return text && *skip_blanks(text) == '\0';
}

/* The member of an object by name, or of an array by position. */
static const char *member(const char *text, const char *name, size_t length)
{
    bool object = *text == '{';
    if (!object && *text != '[')
        return NULL;
    text = skip_blanks(text + 1);
    for (size_t position = 0; *text != '}' && *text != ']'; position++) {
        bool found = !object && position == strtoul(name, NULL, 10);
        if (object) {
            found = strncmp(text + 1, name, length) == 0 && text[1 + length] == '"';
            text = skip_name(text);
        }
        if (found)
            return text;
        text = skip_blanks(skip_value(text));
        text = skip_blanks(text + (*text == ','));
    }
    return NULL;
}

bool json_number(const char *text, const char *path, uint64_t *value)
{
    text = skip_blanks(text);
    while (*path) {
        size_t length = strcspn(path, ".");
        text = member(text, path, length);
        if (!text)
            return false;
        path += length + (path[length] == '.');
    }
    if (!isdigit((unsigned char)*text))
        return false;
    *value = strtoull(text, NULL, 10);
    return true;
}
