/* key-value: a store with many small values, changed at random and then read at random.
 *
 * The store is a hash table with chains, as in Redis or memcached: an entry is one block, its value
 * another. It is filled until entries and values make up --live. Then values are overwritten by
 * others of other sizes, and keys are deleted and added, so that about as many stay; then keys are
 * looked up and their values read. The heap is larger than the caches and what the translation of
 * addresses keeps: how densely the blocks lie counts in memory and in time.
 *
 * The clock covers the changes and the reads, not the filling.
 *
 * Thread rule: one thread. */
#include "lab.h"

static struct {
    uint64_t live, changes, reads, sizes, size_min, size_max;
} settings;

static const struct lab_flag flags[] = {
    {.name = "live",
     .kind = LAB_BYTES,
     .variable = &settings.live,
     .standard = 64 << 20,
     .least = 1 << 10,
     .most = UINT64_C(1) << 40,
     .help = "sum of the sizes of entries and values when the store is filled"},
    {.name = "changes",
     .kind = LAB_COUNT,
     .variable = &settings.changes,
     .standard = 200000,
     .least = 0,
     .most = UINT64_C(1000000000000),
     .unit = "changes",
     .help = "changes, each of which overwrites a value and adds or deletes a key, about"},
    {.name = "reads",
     .kind = LAB_COUNT,
     .variable = &settings.reads,
     .standard = 300000,
     .least = 0,
     .most = UINT64_C(1000000000000),
     .unit = "reads",
     .help = "keys that are looked up after the changes"},
    LAB_DISTRIBUTION(&settings.sizes, LAB_DOUBLINGS),
    LAB_SIZES(&settings.size_min, 16, &settings.size_max, 512),
};

static const struct lab_sizes *sizes;

struct entry {
    struct entry *next; /* in its chain */
    void *value;
    uint32_t size, tag; /* of the value */
    uint32_t key;
    uint32_t check; /* key ^ tag */
};

struct store {
    struct lab_recorder *recorder;
    struct entry **buckets; /* one for two keys */
    uint64_t keys;          /* that may be there; one in two is */
    uint64_t next_size;     /* index into `sizes` */
    uint64_t entries;       /* that were added, in all */
};

/* The link that leads to the entry with this key, or the empty one at the end of its chain. Keys
 * are drawn, so that they need no hash. */
static struct entry **find(const struct store *store, uint32_t key)
{
    struct entry **link = &store->buckets[key / 2];
    while (*link && (*link)->key != key) {
        link = &(*link)->next;
    }
    return link;
}

static void value_create(struct store *store, struct entry *entry, uint32_t tag)
{
    entry->size = lab_sizes_at(sizes, store->next_size++);
    entry->tag = tag;
    entry->check = entry->key ^ tag;
    entry->value = lab_malloc(store->recorder, entry->size);
    lab_mark(entry->value, entry->size, tag);
}

/* Checks the entry as well. */
static void value_read(const struct store *store, const struct entry *entry)
{
    lab_word_expect(entry, sizeof *entry, offsetof(struct entry, check), entry->key ^ entry->tag);
    lab_verify(store->recorder, entry->value, entry->size, entry->tag);
}

static void add(struct store *store, struct entry **link, uint32_t key, uint32_t tag)
{
    struct entry *entry = lab_malloc(store->recorder, sizeof *entry);
    *entry = (struct entry){.key = key};
    value_create(store, entry, tag);
    *link = entry;
    store->entries++;
}

static void drop(struct store *store, struct entry **link)
{
    struct entry *entry = *link;
    *link = entry->next;
    value_read(store, entry);
    lab_free(store->recorder, entry->value);
    lab_free(store->recorder, entry);
}

/* The new value comes before the old one goes. */
static void overwrite(struct store *store, struct entry *entry, uint32_t tag)
{
    struct entry old = *entry;
    value_read(store, entry);
    value_create(store, entry, tag);
    lab_free(store->recorder, old.value);
}

/* Fills the store with every other key. */
static void fill(struct store *store, struct lab_random *random)
{
    for (uint32_t key = 0; key < store->keys; key += 2) {
        add(store, find(store, key), key, (uint32_t)lab_random_next(random));
    }
}

static uint32_t draw_key(const struct store *store, uint64_t draw)
{
    return (uint32_t)lab_below(draw, store->keys);
}

/* Overwrites the value of one key if it is there; another key comes or goes. */
static void change(struct store *store, struct lab_random *random)
{
    uint64_t draw = lab_random_next(random);
    struct entry *entry = *find(store, draw_key(store, draw));
    if (entry) {
        overwrite(store, entry, (uint32_t)draw);
    }
    draw = lab_random_next(random);
    uint32_t key = draw_key(store, draw);
    struct entry **link = find(store, key);
    if (*link) {
        drop(store, link);
    } else {
        add(store, link, key, (uint32_t)draw);
    }
}

/* Tells the nanoseconds of each of `count` steps. */
static void report_ns(const char *name, uint64_t elapsed_ns, uint64_t count)
{
    if (count) {
        lab_figure((double)elapsed_ns / (double)count, "%s_ns", name);
    }
}

/* How many keys there are, so that half of them make up --live. */
static uint64_t count_keys(void)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < LAB_SIZE_TABLE; i++) {
        bytes += sizeof(struct entry) + lab_sizes_at(sizes, i);
    }
    uint64_t keys = 2 * (settings.live / (bytes / LAB_SIZE_TABLE));
    if (keys < 2 || keys > UINT32_MAX) {
        lab_reject("live", "makes %llu keys, not 2 to 4G", (unsigned long long)keys);
    }
    return keys;
}

static void work(struct lab_worker *worker)
{
    struct lab_random *random = &worker->random;
    struct store store = {.recorder = &worker->recorder, .keys = count_keys()};
    size_t table_bytes = store.keys / 2 * sizeof *store.buckets;
    store.buckets = lab_reserve(table_bytes);

    uint64_t start_ns = lab_now_ns();
    fill(&store, random);
    report_ns("fill", lab_now_ns() - start_ns, store.entries);

    lab_clock_start(worker);
    for (uint64_t i = 0; i < settings.changes; i++) {
        change(&store, random);
    }
    report_ns("change", lab_clock_stop(worker), settings.changes);
    lab_clock_start(worker);
    for (uint64_t i = 0; i < settings.reads; i++) {
        struct entry *entry = *find(&store, draw_key(&store, lab_random_next(random)));
        if (entry) {
            value_read(&store, entry);
        }
    }
    report_ns("read", lab_clock_stop(worker), settings.reads);

    for (uint64_t i = 0; i < store.keys / 2; i++) {
        while (store.buckets[i]) {
            drop(&store, &store.buckets[i]);
        }
    }
    worker->recorder.operations += 2 * (store.entries + store.next_size);
    lab_count_size(&worker->recorder, sizeof(struct entry), store.entries);
    lab_count_draws(&worker->recorder, sizes, 0, store.next_size);
    lab_release(store.buckets, table_bytes);
}

int main(int argc, char **argv)
{
    lab_begin(
        "key-value", "A store with many small values, changed and read at random.", flags,
        LAB_LENGTH(flags), argc, argv);
    struct lab_random random = lab_random_stream(1);
    sizes = lab_sizes_create(settings.sizes, settings.size_min, settings.size_max, &random);
    lab_run(1, work);
    return lab_report();
}
