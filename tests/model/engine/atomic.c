/* Atomic words, with the stores that C11 lets a load return.
 *
 * A word has a history: its stores in the order in which they were made. A load returns any store
 * that is not older than one that the thread knows of: because it wrote or read it, or because
 * doing so happens before the load. Acquire takes over what a release store, or the chain of
 * modifications behind it, published.
 *
 * Left out: loads that return a store that is made later (out-of-thin-air is out as well), and
 * sequentially consistent operations, of which the core has none.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/report.h"

struct store {
    uint64_t value;
    uint32_t clock; /* of the writer */
    uint8_t writer;
    struct clock published; /* what an acquiring load takes over */
    struct clock seen;      /* by thread: its clock when it first read this store, or 0 */
};

struct location {
    char *address;
    unsigned size;
    struct store *stores;
    unsigned count, room;
    bool plain; /* written plainly since: the newest value is in memory */
    uint8_t plain_writer;
    uint32_t plain_clock;
};

enum { LOCATIONS_MAX = 1 << 14, STORES_MAX = 64 };

static struct location locations[LOCATIONS_MAX];
static unsigned location_count;

void atomic_forget_all(void)
{
    location_count = 0;
}

void atomic_written_plainly(struct location *location)
{
    location->plain = true;
    location->plain_writer = (uint8_t)current;
    location->plain_clock = shadow_clock()->at[current];
}

static uint64_t memory_read(const void *address, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, address, size);
    return value;
}

static void push(struct location *location, struct store store)
{
    if (location->count == location->room) {
        location->room = location->room ? location->room * 2 : 8;
        location->stores = realloc(location->stores, location->room * sizeof *location->stores);
        if (!location->stores)
            model_fail("no memory for the history of a word");
    }
    location->stores[location->count++] = store;
}

static struct location *location_of(void *address, unsigned size)
{
    struct location **found = shadow_location(address);
    struct location *location = *found;
    if (!location) {
        if (location_count == LOCATIONS_MAX)
            model_fail("LOCATIONS_MAX is too small");
        location = *found = &locations[location_count++];
        location->address = address;
        location->size = size;
        location->count = 0;
        location->plain = false;
        push(location, (struct store){.value = memory_read(address, size), .writer = MAIN});
    }
    if (location->size != size)
        model_fail("atomic accesses of different sizes to %p", address);
    if (location->plain) {
        location->plain = false;
        push(
            location, (struct store){
                          .value = memory_read(address, size),
                          .clock = location->plain_clock,
                          .writer = location->plain_writer});
    }
    return location;
}

/* Index of the oldest store that the thread may read: the newest one that it knows of. */
static unsigned oldest_visible(const struct location *location, const struct clock *clock)
{
    unsigned i = location->count;
    while (--i > 0) {
        const struct store *store = &location->stores[i];
        if (store->clock <= clock->at[store->writer])
            return i;
        for (int thread = 0; thread < CLOCKS; thread++)
            if (store->seen.at[thread] && store->seen.at[thread] <= clock->at[thread])
                return i;
    }
    return 0;
}

static void see(struct store *store)
{
    if (!store->seen.at[current])
        store->seen.at[current] = shadow_clock()->at[current];
}

/* Index of the oldest store that is newer than all that the thread made or has read. */
static unsigned first_news(const struct location *location, int thread)
{
    unsigned i = location->count;
    while (i > 0 && location->stores[i - 1].writer != thread &&
           !location->stores[i - 1].seen.at[thread])
        i--;
    return i;
}

static bool acquires(int order)
{
    return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL;
}

static bool releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL;
}

static void step(enum op_kind kind, void *address, const char *name, int order, const void *code)
{
    if (order == __ATOMIC_SEQ_CST)
        model_fail(
            "a sequentially consistent access, which is not modelled: %s", report_place(code));
    search_step((struct op){kind, address, name, code});
}

static bool is_behind(const struct clock *clock, const struct clock *other)
{
    for (int i = 0; i < CLOCKS; i++)
        if (clock->at[i] > other->at[i])
            return false;
    return true;
}

/* An older store that the thread may read has the same value, and says no more: who reads that one
 * may still read all that it might after this one. */
static bool is_repeated(const struct location *location, unsigned index, unsigned oldest, int order)
{
    const struct store *store = &location->stores[index];
    for (unsigned i = oldest; i < index; i++) {
        const struct store *older = &location->stores[i];
        if (older->value == store->value &&
            (!acquires(order) || is_behind(&older->published, &store->published)))
            return true;
    }
    return false;
}

/* The store that a load reads: one of those from the oldest to the newest, by choice. */
static unsigned choose_store(const struct location *location, unsigned oldest, int order)
{
    unsigned count = 0, stores[STORES_MAX];
    for (unsigned i = location->count; i-- > oldest;)
        if (!is_repeated(location, i, oldest, order)) {
            if (count == STORES_MAX)
                model_fail("STORES_MAX is too small");
            stores[count++] = i;
        }
    return stores[search_choose_store(count)];
}

static uint64_t read_store(struct store *store, int order)
{
    see(store);
    if (acquires(order))
        clock_join(shadow_clock(), &store->published);
    search_note(store->value);
    return store->value;
}

static void write_store(struct location *location, uint64_t value, int order, bool continues)
{
    struct store store = {
        .value = value, .clock = shadow_clock()->at[current], .writer = (uint8_t)current};
    if (continues)
        store.published = location->stores[location->count - 1].published;
    if (releases(order))
        clock_join(&store.published, shadow_clock());
    push(location, store);
    memcpy(location->address, &value, location->size);
    search_note(value);
    shadow_tick();
}

uint64_t atomic_load(void *address, unsigned size, int order, const void *code)
{
    if (!exploring || fiber_own_memory(address))
        return memory_read(address, size);
    step(OP_READ, address, order == __ATOMIC_RELAXED ? "load" : "load-acq", order, code);
    shadow_access(address, size, false, true, code);
    struct location *location = location_of(address, size);
    unsigned oldest = oldest_visible(location, shadow_clock());
    if (search_takes_news() && first_news(location, current) > oldest)
        oldest = first_news(location, current);
    unsigned index = choose_store(location, oldest, order);
    uint64_t value = read_store(&location->stores[index], order);
    shadow_tick();
    return value;
}

void atomic_store(void *address, unsigned size, uint64_t value, int order, const void *code)
{
    if (!exploring || fiber_own_memory(address)) {
        memcpy(address, &value, size);
        return;
    }
    step(OP_WRITE, address, order == __ATOMIC_RELAXED ? "store" : "store-rel", order, code);
    struct location *location = location_of(address, size);
    shadow_access(address, size, true, true, code);
    write_store(location, value, order, false);
}

uint64_t atomic_modify(
    void *address, unsigned size, atomic_change change, uint64_t operand, int order, bool counter,
    const void *code)
{
    if (!exploring || fiber_own_memory(address)) {
        uint64_t before = memory_read(address, size), after = change(before, operand);
        memcpy(address, &after, size);
        return before;
    }
    if (!counter)
        step(OP_WRITE, address, "modify", order, code);
    struct location *location = location_of(address, size);
    shadow_access(address, size, true, true, code);
    struct store *newest = &location->stores[location->count - 1];
    uint64_t before = newest->value;
    if (counter) {
        newest->value = change(before, operand);
        memcpy(address, &newest->value, size);
        return before;
    }
    read_store(newest, order);
    write_store(location, change(before, operand), order, true);
    return before;
}

bool atomic_compare_exchange(
    void *address, unsigned size, uint64_t *expected, uint64_t desired, int order, int fail_order,
    const void *code)
{
    uint64_t wanted = *expected;
    if (!exploring || fiber_own_memory(address)) {
        *expected = memory_read(address, size);
        if (*expected != wanted)
            return false;
        memcpy(address, &desired, size);
        return true;
    }
    step(OP_WRITE, address, "cmpxchg", order, code);
    struct location *location = location_of(address, size);
    shadow_access(address, size, true, true, code);
    unsigned newest = location->count - 1;
    unsigned oldest = oldest_visible(location, shadow_clock());
    /* It fails by reading another value, be it an old one; and succeeds with the newest only. */
    unsigned count = 0, outcome[STORES_MAX];
    for (unsigned i = newest + 1; i-- > oldest && count < STORES_MAX;)
        if (i == newest || location->stores[i].value != wanted)
            outcome[count++] = i;
    unsigned index = outcome[search_choose_store(count)];
    struct store *store = &location->stores[index];
    *expected = store->value;
    if (store->value != wanted) {
        read_store(store, fail_order);
        shadow_tick();
        return false;
    }
    read_store(store, order);
    write_store(location, desired, order, true);
    return true;
}

uint64_t atomic_newest(void *address, unsigned size)
{
    struct location *location = location_of(address, size);
    struct store *store = &location->stores[location->count - 1];
    see(store);
    return store->value;
}

bool atomic_has_news(const void *address, int thread)
{
    const struct location *location = *shadow_location(address);
    return !location || location->plain || first_news(location, thread) < location->count;
}
