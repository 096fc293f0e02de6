/* A checker of JSON text: is it well-formed, and which number stands at a path. */
#ifndef UNIT_JSON_CHECK_H
#define UNIT_JSON_CHECK_H

#include <stdbool.h>
#include <stdint.h>

/* True when the whole text is one JSON value (RFC 8259; no escapes but \" and \\). */
bool json_is_valid(const char *text);

/* The unsigned number at a path such as "tiers.big.slabs" or "classes.3.size" of a valid text;
 * false when there is none. */
bool json_number(const char *text, const char *path, uint64_t *value);

#endif
