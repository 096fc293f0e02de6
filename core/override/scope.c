/* The functions of include/hakmem/hakmem.h about scopes. In the hardened library, which has none,
 * only the first and enter(NULL) can be called. */
#include <errno.h>
#include <string.h>

#include "base/policy.h"
#include "hakmem/hakmem.h"
#include "map/size_class.h"
#include "scope/scope.h"

struct hakmem_scope *hakmem_scope_create(
    const char *name, size_t limit, hakmem_scope_callback *callback, void *argument)
{
    bool can = SCOPES && !POLICY(fallback);
    struct hakmem_scope *scope = can ? scope_create(name, limit, callback, argument) : NULL;
    if (!scope)
        errno = can ? ENOMEM : ENOSYS;
    return scope;
}

int hakmem_scope_enter(struct hakmem_scope *scope)
{
    return SCOPES ? scope_enter(scope) : 0;
}

void hakmem_scope_leave(struct hakmem_scope *scope)
{
    if (SCOPES)
        scope_leave(scope);
}

void *hakmem_scope_malloc(struct hakmem_scope *scope, size_t size)
{
    return SCOPES ? scope_take(scope, NULL, size, MIN_ALIGNMENT) : NULL;
}

void *hakmem_scope_aligned_alloc(struct hakmem_scope *scope, size_t alignment, size_t size)
{
    return SCOPES ? scope_take(scope, NULL, size, alignment) : NULL;
}

size_t hakmem_scope_usage(
    struct hakmem_scope *scope, struct hakmem_scope_figures *usage, size_t size)
{
    struct hakmem_scope_figures now = {0};
    if (SCOPES)
        scope_usage(scope, &now);
    size_t shared = size_min(size, sizeof now);
    memset(usage, 0, size);
    memcpy(usage, &now, shared);
    return shared;
}

void hakmem_scope_limit(struct hakmem_scope *scope, size_t limit)
{
    if (SCOPES)
        scope_limit(scope, limit);
}

void hakmem_scope_reset(struct hakmem_scope *scope)
{
    if (SCOPES)
        scope_reset(scope);
}

void hakmem_scope_destroy(struct hakmem_scope *scope)
{
    if (SCOPES)
        scope_destroy(scope);
}
