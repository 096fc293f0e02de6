/* Owns a check that a text is one well-formed XML element, for the output of malloc_info.
 *
 * It knows elements, attributes, character data with the five named entities, and an XML
 * declaration in front; malloc_info has no use for more. Nothing here allocates.
 */
#ifndef SEMANTICS_XML_H
#define SEMANTICS_XML_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct xml_scan {
    const char *cursor;
    const char *names[32]; /* the open elements, outermost first */
    size_t lengths[32];
    size_t depth;
    size_t elements; /* opened so far */
};

static inline void xml_skip_space(struct xml_scan *scan)
{
    while (isspace((unsigned char)*scan->cursor)) {
        scan->cursor++;
    }
}

static inline size_t xml_name_length(const char *text)
{
    size_t length = 0;
    if (!isalpha((unsigned char)text[0]) && text[0] != '_') {
        return 0;
    }
    while (isalnum((unsigned char)text[length]) || strchr("_-.:", text[length]) != NULL) {
        if (text[length] == '\0') {
            break;
        }
        length++;
    }
    return length;
}

/* Steps over one character of text or of an attribute's value; false when it is not allowed. */
static inline bool xml_character(struct xml_scan *scan)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    if (*scan->cursor != '&') {
        bool allowed = *scan->cursor != '\0' && *scan->cursor != '<';
        scan->cursor += allowed ? 1 : 0;
        return allowed;
    }
    for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
        if (strncmp(scan->cursor, entities[i], strlen(entities[i])) == 0) {
            scan->cursor += strlen(entities[i]);
            return true;
        }
    }
    return false;
}

static inline bool xml_attribute(struct xml_scan *scan)
{
    size_t length = xml_name_length(scan->cursor);
    scan->cursor += length;
    if (length == 0 || *scan->cursor++ != '=') {
        return false;
    }
    char quote = *scan->cursor++;
    if (quote != '"' && quote != '\'') {
        return false;
    }
    while (*scan->cursor != quote) {
        if (!xml_character(scan)) {
            return false;
        }
    }
    scan->cursor++;
    return true;
}

static inline bool xml_close(struct xml_scan *scan)
{
    size_t length = xml_name_length(scan->cursor);
    if (scan->depth == 0 || length == 0 || length != scan->lengths[scan->depth - 1] ||
        strncmp(scan->cursor, scan->names[scan->depth - 1], length) != 0) {
        return false;
    }
    scan->cursor += length;
    xml_skip_space(scan);
    scan->depth--;
    return *scan->cursor++ == '>';
}

static inline bool xml_open(struct xml_scan *scan)
{
    size_t length = xml_name_length(scan->cursor);
    if (length == 0 || scan->depth == sizeof(scan->names) / sizeof(scan->names[0])) {
        return false;
    }
    scan->names[scan->depth] = scan->cursor;
    scan->lengths[scan->depth] = length;
    scan->depth++;
    scan->elements++;
    scan->cursor += length;
    for (;;) {
        bool spaced = isspace((unsigned char)*scan->cursor);
        xml_skip_space(scan);
        if (*scan->cursor == '>') {
            scan->cursor++;
            return true;
        }
        if (scan->cursor[0] == '/' && scan->cursor[1] == '>') {
            scan->cursor += 2;
            scan->depth--;
            return true;
        }
        if (!spaced || !xml_attribute(scan)) {
            return false;
        }
    }
}

/* True when `text` is one element called `root`, well-formed to its end. */
static inline bool xml_is_well_formed(const char *text, const char *root)
{
    struct xml_scan scan = {.cursor = text};
    xml_skip_space(&scan);
    if (strncmp(scan.cursor, "<?xml ", 6) == 0) {
        const char *end = strstr(scan.cursor, "?>");
        if (end == NULL) {
            return false;
        }
        scan.cursor = end + 2;
        xml_skip_space(&scan);
    }
    if (*scan.cursor++ != '<' || xml_name_length(scan.cursor) != strlen(root) ||
        strncmp(scan.cursor, root, strlen(root)) != 0 || !xml_open(&scan)) {
        return false;
    }
    while (scan.depth > 0) {
        bool good;
        if (scan.cursor[0] == '<' && scan.cursor[1] == '/') {
            scan.cursor += 2;
            good = xml_close(&scan);
        } else if (*scan.cursor == '<') {
            scan.cursor++;
            good = xml_open(&scan);
        } else {
            good = xml_character(&scan);
        }
        if (!good) {
            return false;
        }
    }
    xml_skip_space(&scan);
    return *scan.cursor == '\0' && scan.elements > 0;
}

#endif
