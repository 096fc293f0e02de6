/* traverse: lists, trees and tables of small nodes are churned, and then walked.
 *
 * What is measured is not the calls of the allocator but what they leave behind: where the nodes
 * lie, and how densely. The clock runs during the walks alone. A structure is
 *
 *     list:   a doubly linked one, whose new nodes come last
 *     tree:   a binary search tree in which the priorities of the nodes keep the balance
 *     table:  a hash table with chains
 *
 * and it is churned in rounds. Nodes at random places go and come; half of the nodes are replaced
 * many times over, one by one; most are freed and come anew. Their sizes are drawn. In the end
 * each place has a node, and all are walked a few times: the list from the first to the last, the
 * tree in the order of its keys, the table chain by chain.
 *
 * Thread rule: one thread. */
#include "lab.h"

enum structure { LIST, TREE, TABLE };

static const char *const structures[] = {"list", "tree", "table", NULL};

static struct {
    uint64_t structure, nodes, rounds, replacements, walks, size_min, size_max;
} settings;

/* Of the nodes, those that survive when most are freed. */
#define SURVIVORS_PERCENT 10

static const struct lab_flag flags[] = {
    {.name = "structure",
     .kind = LAB_CHOICE,
     .variable = &settings.structure,
     .standard = LIST,
     .choices = structures,
     .help = "what the nodes are linked to"},
    {.name = "nodes",
     .kind = LAB_COUNT,
     .variable = &settings.nodes,
     .standard = 50000,
     .least = 2,
     .most = 100000000,
     .unit = "nodes",
     .help = "nodes of the structure when it is walked"},
    {.name = "rounds",
     .kind = LAB_COUNT,
     .variable = &settings.rounds,
     .standard = 2,
     .least = 1,
     .most = 1000000,
     .unit = "rounds",
     .help = "rounds of churn before the walks"},
    {.name = "replacements",
     .kind = LAB_COUNT,
     .variable = &settings.replacements,
     .standard = 2,
     .least = 0,
     .most = 1000,
     .unit = "times",
     .help = "how often each node of one half is replaced in a round, about"},
    {.name = "walks",
     .kind = LAB_COUNT,
     .variable = &settings.walks,
     .standard = 20,
     .least = 1,
     .most = 1000000,
     .unit = "walks",
     .help = "how often all nodes are visited"},
    LAB_SIZES(&settings.size_min, 24, &settings.size_max, 200),
};

static const struct lab_sizes *sizes;

/* The last word of a node depends on its number; the size is that of draw `number`. */
struct node {
    struct node *left, *right; /* the one before and the one after; of a chain, `right` alone */
    uint32_t number;           /* nodes that were allocated before */
};

/* The smallest node has the last word behind the links and the number. */
#define NODE_SIZE_LEAST 24

struct place {
    struct lab_recorder *recorder;
    struct node **nodes;   /* by place; NULL: none */
    struct node **buckets; /* of the table */
    struct node *first, *last, *root;
    uint32_t allocated; /* nodes so far; the number of the next one */
};

/* ---- Nodes ----------------------------------------------------------------------------------- */

static uint32_t last_word_of(uint32_t number)
{
    return (uint32_t)lab_mix(lab_seed() << 32 ^ number);
}

static struct node *node_create(struct place *place)
{
    uint32_t number = place->allocated++;
    uint32_t size = lab_sizes_at(sizes, number);
    struct node *node = lab_malloc(place->recorder, size);
    *node = (struct node){.number = number};
    lab_word_write(node, size - 4, last_word_of(number));
    return node;
}

static void node_destroy(struct place *place, struct node *node)
{
    uint32_t size = lab_sizes_at(sizes, node->number);
    uint32_t expected = last_word_of(node->number);
    place->recorder->checksum += lab_word_expect(node, size, size - 4, expected);
    lab_free(place->recorder, node);
}

/* ---- The structures -------------------------------------------------------------------------- */

static void list_insert(struct place *place, struct node *node)
{
    node->left = place->last;
    *(place->last ? &place->last->right : &place->first) = node;
    place->last = node;
}

static void list_erase(struct place *place, struct node *node)
{
    *(node->left ? &node->left->right : &place->first) = node->right;
    *(node->right ? &node->right->left : &place->last) = node->left;
}

/* Keys and priorities are drawn; no two nodes have the same key. */
static uint64_t key_of(const struct node *node)
{
    return lab_mix(node->number);
}

static uint64_t priority_of(const struct node *node)
{
    return lab_mix(~(uint64_t)node->number);
}

/* Parts a tree into the keys below `key` and those above. */
static void tree_split(struct node *tree, uint64_t key, struct node **below, struct node **above)
{
    while (tree) {
        if (key_of(tree) < key) {
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

static void tree_insert(struct place *place, struct node *node)
{
    uint64_t key = key_of(node), priority = priority_of(node);
    struct node **link = &place->root;
    while (*link && priority_of(*link) > priority) {
        link = key < key_of(*link) ? &(*link)->left : &(*link)->right;
    }
    struct node *rest = *link;
    *link = node;
    tree_split(rest, key, &node->left, &node->right);
}

static void tree_erase(struct place *place, struct node *node)
{
    uint64_t key = key_of(node);
    struct node **link = &place->root;
    while (*link != node) {
        link = key < key_of(*link) ? &(*link)->left : &(*link)->right;
    }
    struct node *below = node->left, *above = node->right;
    while (below && above) {
        if (priority_of(below) > priority_of(above)) {
            *link = below;
            link = &below->right;
            below = below->right;
        } else {
            *link = above;
            link = &above->left;
            above = above->left;
        }
    }
    *link = below ? below : above;
}

/* As many buckets as nodes. */
static struct node **bucket_of(struct place *place, const struct node *node)
{
    return &place->buckets[lab_below(key_of(node), settings.nodes)];
}

static void table_insert(struct place *place, struct node *node)
{
    struct node **bucket = bucket_of(place, node);
    node->right = *bucket;
    *bucket = node;
}

static void table_erase(struct place *place, struct node *node)
{
    struct node **link = bucket_of(place, node);
    while (*link != node) {
        link = &(*link)->right;
    }
    *link = node->right;
}

/* ---- Churn ----------------------------------------------------------------------------------- */

static void insert(struct place *place, uint64_t index)
{
    static void (*const inserts[])(struct place *, struct node *) = {
        list_insert, tree_insert, table_insert};
    struct node *node = node_create(place);
    inserts[settings.structure](place, node);
    place->nodes[index] = node;
}

static void erase(struct place *place, uint64_t index)
{
    static void (*const erases[])(struct place *, struct node *) = {
        list_erase, tree_erase, table_erase};
    erases[settings.structure](place, place->nodes[index]);
    node_destroy(place, place->nodes[index]);
    place->nodes[index] = NULL;
}

/* Lets each place have a node. */
static void complete(struct place *place)
{
    for (uint64_t i = 0; i < settings.nodes; i++) {
        if (!place->nodes[i]) {
            insert(place, i);
        }
    }
}

static void churn(struct place *place, struct lab_random *random)
{
    for (uint64_t step = 0; step < settings.nodes; step++) {
        uint64_t index = lab_below(lab_random_next(random), settings.nodes);
        (place->nodes[index] ? erase : insert)(place, index);
    }
    complete(place);
    uint64_t half = settings.nodes / 2;
    for (uint64_t step = 0; step < settings.replacements * half; step++) {
        uint64_t index = 2 * lab_below(lab_random_next(random), half);
        erase(place, index);
        insert(place, index);
    }
    for (uint64_t i = 0; i < settings.nodes; i++) {
        if (lab_below(lab_random_next(random), 100) >= SURVIVORS_PERCENT) {
            erase(place, i);
        }
    }
    complete(place);
}

/* ---- Walks ----------------------------------------------------------------------------------- */

struct visited {
    uint64_t nodes, sum; /* how many, and of their numbers */
};

static void visit(struct visited *visited, const struct node *node)
{
    visited->nodes++;
    visited->sum += node->number;
}

static void walk_tree(struct visited *visited, const struct node *tree)
{
    for (; tree; tree = tree->right) {
        walk_tree(visited, tree->left);
        visit(visited, tree);
    }
}

static void walk_chain(struct visited *visited, const struct node *node)
{
    for (; node; node = node->right) {
        visit(visited, node);
    }
}

static struct visited walk(const struct place *place)
{
    struct visited visited = {0};
    switch ((enum structure)settings.structure) {
    case LIST:
        walk_chain(&visited, place->first);
        break;
    case TREE:
        walk_tree(&visited, place->root);
        break;
    case TABLE:
        for (uint64_t i = 0; i < settings.nodes; i++) {
            walk_chain(&visited, place->buckets[i]);
        }
        break;
    }
    return visited;
}

static void work(struct lab_worker *worker)
{
    struct place place = {.recorder = &worker->recorder};
    size_t table_bytes = settings.nodes * sizeof *place.nodes;
    place.nodes = lab_reserve(table_bytes);
    place.buckets = lab_reserve(table_bytes);

    complete(&place);
    for (uint64_t i = 0; i < settings.rounds; i++) {
        churn(&place, &worker->random);
    }
    lab_clock_start(worker);
    for (uint64_t i = 0; i < settings.walks; i++) {
        struct visited visited = walk(&place);
        if (visited.nodes != settings.nodes) {
            lab_fail(
                "a walk leads to %llu of %llu nodes", (unsigned long long)visited.nodes,
                (unsigned long long)settings.nodes);
        }
        worker->recorder.checksum += visited.sum;
    }
    uint64_t walks_ns = lab_clock_stop(worker);
    lab_figure((double)walks_ns / (double)(settings.walks * settings.nodes), "visit_ns");
    for (uint64_t i = 0; i < settings.nodes; i++) {
        erase(&place, i);
    }

    worker->recorder.operations += 2 * (uint64_t)place.allocated;
    lab_count_draws(&worker->recorder, sizes, 0, place.allocated);
    lab_release(place.nodes, table_bytes);
    lab_release(place.buckets, table_bytes);
}

int main(int argc, char **argv)
{
    lab_begin(
        "traverse", "Churns a structure of small nodes; how long do walks take then?", flags,
        LAB_LENGTH(flags), argc, argv);
    if (settings.size_min < NODE_SIZE_LEAST) {
        lab_reject("size-min", "must be %d at least", NODE_SIZE_LEAST);
    }
    struct lab_random random = lab_random_stream(1);
    sizes = lab_sizes_create(LAB_UNIFORM, settings.size_min, settings.size_max, &random);
    lab_run(1, work);
    return lab_report();
}
