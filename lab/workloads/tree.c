/* tree: ordered maps, of whose entries some come, some go, and most are looked up.
 *
 * Each thread has a map of its own, a binary search tree that its entries' priorities keep in
 * balance. An entry is two blocks: the node, and a value of a drawn size. At each step a key is
 * drawn; an entry that has it is removed, otherwise one is added; then others are looked up. What
 * lies near what in memory counts here, not the time of the calls alone. With --rebuild the map is
 * emptied after some steps and grows anew.
 *
 * Thread rule: a map, with its worker, belongs to the worker's thread. */
#include "lab.h"

static struct {
    uint64_t operations, threads, entries, lookups, rebuild, sizes, size_min, size_max;
} settings;

static const struct lab_flag flags[] = {
    LAB_OPERATIONS(&settings.operations, 2000000),
    LAB_THREADS(&settings.threads, 1),
    {.name = "entries",
     .kind = LAB_COUNT,
     .variable = &settings.entries,
     .standard = 10000,
     .least = 1,
     .most = 100000000,
     .unit = "entries",
     .help = "entries of the map of each thread, about"},
    {.name = "lookups",
     .kind = LAB_COUNT,
     .variable = &settings.lookups,
     .standard = 2,
     .least = 0,
     .most = 1000,
     .unit = "entries",
     .help = "entries that are looked up at each step"},
    {.name = "rebuild",
     .kind = LAB_COUNT,
     .variable = &settings.rebuild,
     .standard = 0,
     .least = 0,
     .most = UINT64_C(1000000000000),
     .unit = "steps",
     .help = "steps until the map is emptied, to grow anew; 0: never"},
    LAB_DISTRIBUTION(&settings.sizes, LAB_UNIFORM),
    LAB_SIZES(&settings.size_min, 16, &settings.size_max, 128),
};

static const struct lab_sizes *sizes;

struct node {
    struct node *left, *right; /* the smaller keys, the larger ones */
    void *value;
    uint32_t size, tag; /* of the value */
    uint32_t key;
    uint32_t check; /* key ^ tag */
};

struct map {
    struct lab_recorder *recorder;
    struct node *root;
    uint64_t next_size; /* index into `sizes` */
};

/* No node has a higher priority than the one above it. */
static uint64_t priority(uint32_t key)
{
    return lab_mix(key);
}

static void node_create(struct map *map, struct node **place, uint32_t key, uint32_t tag)
{
    uint32_t size = lab_sizes_at(sizes, map->next_size++);
    struct node *node = lab_malloc(map->recorder, sizeof *node);
    *node = (struct node){.size = size, .tag = tag, .key = key, .check = key ^ tag};
    node->value = lab_malloc(map->recorder, size);
    lab_mark(node->value, size, tag);
    *place = node;
}

static void node_destroy(struct map *map, struct node *node)
{
    lab_word_expect(node, sizeof *node, offsetof(struct node, check), node->key ^ node->tag);
    lab_verify(map->recorder, node->value, node->size, node->tag);
    lab_free(map->recorder, node->value);
    lab_free(map->recorder, node);
}

/* Parts a tree into the keys below `key` and those above. */
static void split(struct node *tree, uint32_t key, struct node **below, struct node **above)
{
    while (tree) {
        if (tree->key < key) {
            *below = tree;
            below = &tree->right;
            tree = tree->right;
        } else {
            *above = tree;
            above = &tree->left;
            tree = tree->left;
        }
    }
    *below = *above = NULL;
}

/* Joins two trees into one at `place`; all keys of `below` are smaller than those of `above`. */
static void join(struct node *below, struct node *above, struct node **place)
{
    while (below && above) {
        if (priority(below->key) > priority(above->key)) {
            *place = below;
            place = &below->right;
            below = below->right;
        } else {
            *place = above;
            place = &above->left;
            above = above->left;
        }
    }
    *place = below ? below : above;
}

/* The place of the node with this key, or an empty one. */
static struct node **find(struct node **place, uint32_t key)
{
    while (*place && (*place)->key != key) {
        place = key < (*place)->key ? &(*place)->left : &(*place)->right;
    }
    return place;
}

static void add(struct map *map, uint32_t key, uint32_t tag)
{
    struct node **place = &map->root;
    while (*place && priority((*place)->key) > priority(key)) {
        place = key < (*place)->key ? &(*place)->left : &(*place)->right;
    }
    struct node *rest = *place;
    node_create(map, place, key, tag);
    split(rest, key, &(*place)->left, &(*place)->right);
}

static void empty(struct map *map, struct node *tree)
{
    if (tree) {
        empty(map, tree->left);
        empty(map, tree->right);
        node_destroy(map, tree);
    }
}

/* A key is there half of the time. */
static uint32_t draw_key(uint64_t draw)
{
    return (uint32_t)lab_below(draw, 2 * settings.entries);
}

static void step(struct map *map, struct lab_random *random)
{
    uint64_t draw = lab_random_next(random);
    struct node **place = find(&map->root, draw_key(draw));
    struct node *node = *place;
    if (node) {
        join(node->left, node->right, place);
        node_destroy(map, node);
    } else {
        add(map, draw_key(draw), (uint32_t)draw);
    }
    for (uint64_t i = 0; i < settings.lookups; i++) {
        node = *find(&map->root, draw_key(lab_random_next(random)));
        if (node) {
            map->recorder->checksum += lab_word_expect(node->value, node->size, 0, node->tag);
        }
    }
}

static void work(struct lab_worker *worker)
{
    uint64_t steps = lab_share(worker, settings.operations / 2);
    uint64_t first_size = worker->index * 1021; /* the threads differ in their sizes */
    struct map map = {.recorder = &worker->recorder, .next_size = first_size};

    lab_clock_start(worker);
    for (uint64_t i = 0; i < steps; i++) {
        if (settings.rebuild && i % settings.rebuild == settings.rebuild - 1) {
            empty(&map, map.root);
            map.root = NULL;
        }
        step(&map, &worker->random);
    }
    empty(&map, map.root);
    lab_clock_stop(worker);

    uint64_t added = map.next_size - first_size;
    worker->recorder.operations += 4 * added;
    lab_count_draws(&worker->recorder, sizes, first_size, added);
    lab_count_size(&worker->recorder, sizeof(struct node), added);
}

int main(int argc, char **argv)
{
    lab_begin(
        "tree", "Ordered maps, of whose entries some come and go and most are looked up.", flags,
        LAB_LENGTH(flags), argc, argv);
    struct lab_random random = lab_random_stream(settings.threads);
    sizes = lab_sizes_create(settings.sizes, settings.size_min, settings.size_max, &random);
    lab_run(settings.threads, work);
    return lab_report();
}
