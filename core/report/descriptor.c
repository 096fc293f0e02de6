/* See descriptor.h. */
#include "report/descriptor.h"

#include <stddef.h>

#include "api/watch.h"
#include "base/policy.h"
#include "base/pressure.h"
#include "hakmem/hakmem.h"
#include "hardened.h"
#include "map/metadata.h"
#include "os/os.h"
#include "report/cycles.h"
#include "scope/cache.h"
#include "scope/span.h"
#include "slab/shard.h"
#include "span/big_cache.h"
#include "span/big_part.h"
#include "thread/registry.h"
#include "trace/trace.h"

#if !HAKMEM_HARDENED
const uint32_t hardened_layout[] = {0};
#endif

/* Only observers from outside look at it. The constructor refers to it (init.c), or the linker
 * would leave it out. */
const struct descriptor descriptor = {
    .magic = DESCRIPTOR_MAGIC,
    .self = &descriptor,
    .layout = DESCRIPTOR_LAYOUT,
    .addresses = DESCRIPTOR_ADDRESSES,
    .items = DESCRIPTOR_ITEMS,
    .version = HAKMEM_VERSION,
    .address =
        {
#define ADDRESS(object) &(object),
#define MEASURED(object) HAKMEM_MEASURING ? &(object) : NULL,
#define CALL(function) (const void *)(uintptr_t)(function),
#define NUMBER(constant)
#define SIZE(type)
#define FIELD(type, member)
#define TAIL(type, member)
#include "report/descriptor.def"
        },
    .item =
        {
#define ADDRESS(object)
#define MEASURED(object)
#define CALL(function)
#define NUMBER(constant) {(constant), 0},
#define SIZE(type) {0, sizeof(struct type)},
#define FIELD(type, member) {offsetof(struct type, member), sizeof(((struct type *)0)->member)},
#define TAIL(type, member) {offsetof(struct type, member), 0},
#include "report/descriptor.def"
        },
};
